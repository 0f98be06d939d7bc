package identity

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// NewPlaintext returns the credentials of a server without TLS. The AuthInfo of its connections is a
// *Peer.
func NewPlaintext() credentials.TransportCredentials { return plaintext{serverOnly{}} }

type plaintext struct{ serverOnly }

// ServerHandshake implements credentials.TransportCredentials.
func (plaintext) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, newPeer(conn, credentials.NoSecurity), nil
}

// Info implements credentials.TransportCredentials.
func (plaintext) Info() credentials.ProtocolInfo { return insecure.NewCredentials().Info() }

// Clone implements credentials.TransportCredentials.
func (p plaintext) Clone() credentials.TransportCredentials { return p }

// NewTLS returns the credentials of a server with TLS 1.3 and no session tickets: each connection proves
// anew that the client has its certificate's key. A client without a certificate, or with one that is
// expired or not trusted, can connect all the same, so that its calls can be told what is wrong. The
// AuthInfo of the connections is a *Peer.
func NewTLS(c *Certificates) credentials.TransportCredentials {
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load().certificate, nil },
	}
	if c.asks {
		config.ClientAuth = tls.RequestClientCert
		config.VerifyConnection = modest
	}
	return transport{certificates: c, tls: credentials.NewTLS(config)}
}

// What a client may show. A certificate takes many times its encoding in memory for as long as its
// connection lasts, and time to verify with the keys that its chain holds, whoever signed that.
const (
	mostCertificates     = 10
	mostCertificateBytes = 8 << 10 // of all of them
	mostNames            = 32      // of one certificate
	mostRSABits          = 4096
)

// modest refuses chains that would take much of the server.
func modest(state tls.ConnectionState) error {
	size := 0
	for _, c := range state.PeerCertificates {
		size += len(c.Raw)
		if len(c.URIs)+len(c.DNSNames)+len(c.EmailAddresses)+len(c.IPAddresses) > mostNames {
			return errors.New("a certificate of the client has too many names")
		}
		if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > mostRSABits {
			return errors.New("a key of the client's certificate chain is too long")
		}
	}
	if len(state.PeerCertificates) > mostCertificates || size > mostCertificateBytes {
		return errors.New("the client's certificate chain is too long")
	}
	return nil
}

type transport struct {
	serverOnly
	certificates *Certificates
	tls          credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (t transport) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.tls.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	p := newPeer(raw, credentials.PrivacyAndIntegrity)
	p.certificates = t.certificates
	p.presented = info.(credentials.TLSInfo).State.PeerCertificates
	return conn, p, nil
}

// Info implements credentials.TransportCredentials.
func (t transport) Info() credentials.ProtocolInfo { return t.tls.Info() }

// Clone implements credentials.TransportCredentials.
func (t transport) Clone() credentials.TransportCredentials {
	t.tls = t.tls.Clone()
	return t
}

// serverOnly is what the credentials of a server have no use for.
type serverOnly struct{}

// ClientHandshake implements credentials.TransportCredentials.
func (serverOnly) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are the credentials of a server")
}

// OverrideServerName implements credentials.TransportCredentials.
func (serverOnly) OverrideServerName(string) error { return nil }
