package client

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

var errNotPrivate = errors.New("a token goes over TLS, to loopback or to a unix socket only")

// plaintext is insecure.NewCredentials for connections that tokens may travel over. It looks at
// where they lead.
type plaintext struct {
	credentials.TransportCredentials
}

func newPlaintext() plaintext { return plaintext{insecure.NewCredentials()} }

// plaintextInfo says whether a connection stays on this machine.
type plaintextInfo struct {
	credentials.CommonAuthInfo
	local bool
}

// AuthType implements credentials.AuthInfo.
func (plaintextInfo) AuthType() string { return "insecure" }

// ValidateAuthority implements credentials.AuthorityValidator, as for any plaintext.
func (plaintextInfo) ValidateAuthority(string) error { return nil }

// ClientHandshake implements credentials.TransportCredentials.
func (plaintext) ClientHandshake(
	_ context.Context, _ string, conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	info := plaintextInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	switch remote := conn.RemoteAddr().(type) {
	case *net.TCPAddr:
		info.local = remote.IP.IsLoopback()
	case *net.UnixAddr:
		info.local = true
	}
	return conn, info, nil
}

// Clone implements credentials.TransportCredentials.
func (p plaintext) Clone() credentials.TransportCredentials { return p }

// checkPrivate fails if a token that is sent over the connection could be read on its way.
func checkPrivate(info credentials.AuthInfo) error {
	switch info := info.(type) {
	case plaintextInfo:
		if info.local {
			return nil
		}
	case interface {
		GetCommonAuthInfo() credentials.CommonAuthInfo
	}:
		if info.GetCommonAuthInfo().SecurityLevel == credentials.PrivacyAndIntegrity {
			return nil
		}
	}
	return errNotPrivate
}

// leavesMachine reports whether a resolved address is surely not on this machine. Of a name, only
// the connection tells.
func leavesMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && !ip.Unmap().IsLoopback()
}
