package identity

import (
	"crypto/x509"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// Peer is the other end of a connection after its handshake: a credentials.AuthInfo. It is safe for
// concurrent use.
type Peer struct {
	credentials.CommonAuthInfo

	certificates *Certificates       // nil: plaintext
	presented    []*x509.Certificate // the leaf first; its key is proven
	verdict      atomic.Pointer[verdict]
	verifying    sync.Mutex // one call at a time
	uid          uint32
	uidKnown     bool
	private      bool
}

// newPeer returns what a raw connection tells of the peer.
func newPeer(conn net.Conn, level credentials.SecurityLevel) *Peer {
	p := &Peer{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: level}}
	p.uid, p.uidKnown = unixUser(conn.RemoteAddr())
	p.private = conn.LocalAddr().Network() == "unix" || onLoopback(conn.LocalAddr()) && onLoopback(conn.RemoteAddr())
	return p
}

func onLoopback(address net.Addr) bool {
	if !strings.HasPrefix(address.Network(), "tcp") {
		return false
	}
	end, err := netip.ParseAddrPort(address.String()) // wrapped addresses have no other form in common
	return err == nil && end.Addr().Unmap().IsLoopback()
}

// AuthType implements credentials.AuthInfo.
func (p *Peer) AuthType() string {
	if p.certificates != nil {
		return "tls"
	}
	return "insecure"
}

// Caller returns who the peer is by its certificate, at a time and by the roots that are in force. What
// came of verifying is remembered until the roots are replaced or a certificate begins or ceases to be
// valid. The error is ErrMissing if there is no certificate, or an *InvalidError.
func (p *Peer) Caller(now time.Time) (*Caller, error) {
	if len(p.presented) == 0 {
		return nil, ErrMissing
	}
	roots := p.certificates.current.Load().roots
	if v := p.verdict.Load(); v != nil && v.holds(roots, now) {
		return v.caller, v.err
	}
	p.verifying.Lock() // verifying a hostile chain takes long, and calls come together
	defer p.verifying.Unlock()
	v := p.verdict.Load()
	if v == nil || !v.holds(roots, now) {
		v = roots.verify(p.presented, now)
		p.verdict.Store(v)
	}
	return v.caller, v.err
}

// UnixUser returns the user that the process at the other end of a unix socket ran as when it
// connected, as the kernel says. It is known on Linux, of connections that WithUnixUsers accepted, and
// unless it is the user that stands for all those of other user namespaces.
func (p *Peer) UnixUser() (uid uint32, ok bool) { return p.uid, p.uidKnown }

// Private reports whether a bearer token may travel over the connection: it is TLS, or a unix socket, or
// on loopback at both ends.
func (p *Peer) Private() bool { return p.private || p.certificates != nil }
