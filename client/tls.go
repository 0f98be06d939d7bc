package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"google.golang.org/grpc/credentials"
)

// TLSFiles names the PEM files that connections are secured with, and says who the server has to be.
type TLSFiles struct {
	// CA holds the certificate authorities that the server is verified against. Empty: the system's.
	CA string
	// Certificate is the client's own, followed by its intermediate ones, and Key its private key.
	// Both are empty if the client shows none.
	Certificate, Key string
	// ServerName is the host that the server's certificate has to name. Empty: that of its address.
	ServerName string
	// ServerID is the SPIFFE ID, with a path, that the server's certificate has to hold, in the place
	// of a host name. It needs CA, whose authorities are then those of its trust domain, and cannot go
	// with ServerName.
	ServerID string
}

// fileCredentials secures each connection with what the files hold when it is made.
type fileCredentials struct {
	authorities *fresh[[]*x509.Certificate] // nil: the system's
	certificate *fresh[*tls.Certificate]    // nil: none
	serverName  string
	serverID    spiffeid.ID // zero: the host name counts
}

// open reads the files for the first time.
func (f TLSFiles) open(now func() time.Time) (*fileCredentials, error) {
	c := &fileCredentials{serverName: f.ServerName}
	var err error
	switch {
	case (f.Certificate == "") != (f.Key == ""):
		return nil, errors.New("of TLSFiles, Certificate and Key go together")
	case f.ServerID != "" && f.ServerName != "":
		return nil, errors.New("of TLSFiles, ServerID cannot go with ServerName")
	case f.ServerID != "" && f.CA == "":
		return nil, errors.New("of TLSFiles, ServerID needs CA")
	case f.ServerID != "":
		if c.serverID, err = spiffeid.FromString(f.ServerID); err != nil {
			return nil, fmt.Errorf("ServerID %q: %w", f.ServerID, err)
		}
		if c.serverID.Path() == "" {
			return nil, fmt.Errorf("ServerID %q: it has no path", f.ServerID)
		}
	}
	if f.CA != "" {
		read := func() ([]*x509.Certificate, error) { return readAuthorities(f.CA) }
		if c.authorities, err = newFresh(read, 0, now); err != nil {
			return nil, err
		}
	}
	if f.Certificate != "" {
		read := func() (*tls.Certificate, error) { return readKeyPair(f.Certificate, f.Key) }
		if c.certificate, err = newFresh(read, 0, now); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readAuthorities passes over what is no certificate, or none that can be understood, as crypto/x509
// does: a system's file may hold some of those.
func readAuthorities(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	var found []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, certificate)
		}
	}
	if len(found) == 0 {
		return nil, fileError(path, errors.New("it holds no certificate in PEM form"))
	}
	return found, nil
}

func readKeyPair(path, keyPath string) (*tls.Certificate, error) {
	certificate, err := os.ReadFile(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	key, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, fileError(keyPath, err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fileError(path, fmt.Errorf("with the key %s: %w", keyPath, err))
	}
	return &pair, nil
}

// config returns what the files say now.
func (c *fileCredentials) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if c.authorities != nil {
		authorities, err := c.authorities.get()
		if err != nil {
			return nil, err
		}
		if c.serverID.IsZero() {
			config.RootCAs = x509.NewCertPool()
			for _, authority := range authorities {
				config.RootCAs.AddCert(authority)
			}
		} else {
			config.InsecureSkipVerify = true // of the host name; the rest is verified here
			config.VerifyConnection = func(state tls.ConnectionState) error {
				return verifyID(state.PeerCertificates, c.serverID, authorities)
			}
		}
	}
	if c.certificate != nil {
		certificate, err := c.certificate.get()
		if err != nil {
			return nil, err
		}
		// Shown whatever authorities the server names: one that does not trust it can then say so.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate, nil
		}
	}
	return config, nil
}

// verifyID fails unless one of the authorities vouches for the chain, and its leaf is id.
func verifyID(chain []*x509.Certificate, id spiffeid.ID, authorities []*x509.Certificate) error {
	found, _, err := x509svid.Verify(chain, x509bundle.FromX509Authorities(id.TrustDomain(), authorities))
	if err == nil && found != id {
		err = fmt.Errorf("the server is %s, not %s", found, id)
	}
	return err
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *fileCredentials) ClientHandshake(
	ctx context.Context, authority string, conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	config, err := c.config()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials.
func (*fileCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("client: no server can use the credentials of a client")
}

// Info implements credentials.TransportCredentials.
func (c *fileCredentials) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(&tls.Config{ServerName: c.serverName}).Info()
}

// Clone implements credentials.TransportCredentials.
func (c *fileCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials; gRPC does not call it.
func (*fileCredentials) OverrideServerName(string) error {
	return errors.New("client: the name of the server cannot be changed")
}
