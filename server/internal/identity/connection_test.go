package identity_test

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

const patience = 20 * time.Second // of tests for what takes no time

// listen listens on loopback for the length of the test.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// accept connects to a listener and returns the peer that a server with creds sees. The client's dial
// and the server's handshake run at the same time.
func accept(t *testing.T, creds credentials.TransportCredentials, listener net.Listener, dial func(network, address string) (net.Conn, error)) (*identity.Peer, net.Conn, error) {
	t.Helper()
	type dialed struct {
		conn net.Conn
		err  error
	}
	client := make(chan dialed, 1)
	go func() {
		conn, err := dial(listener.Addr().Network(), listener.Addr().String())
		client <- dialed{conn, err}
	}()
	raw, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(patience))
	_, info, err := creds.ServerHandshake(raw)
	if err != nil {
		_ = raw.Close()
	}
	other := <-client
	if other.err == nil {
		t.Cleanup(func() { _ = other.conn.Close() })
	}
	if err != nil {
		return nil, other.conn, err
	}
	if other.err != nil {
		t.Fatal(other.err)
	}
	return info.(*identity.Peer), other.conn, nil
}

// clientConfig is that of a client with a certificate; nil is none.
func clientConfig(server *testca.CA, leaf *testca.Leaf) *tls.Config {
	config := &tls.Config{RootCAs: server.Pool(), NextProtos: []string{"h2"}, ServerName: "127.0.0.1"}
	if leaf != nil {
		// As it is: the client would leave out what the server may not accept.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &leaf.TLS, nil }
	}
	return config
}

func dialTLS(config *tls.Config) func(network, address string) (net.Conn, error) {
	return func(network, address string) (net.Conn, error) {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, network, address, config)
		if err != nil {
			return nil, err // not a nil *tls.Conn
		}
		return conn, nil
	}
}

// connect returns what a server with certificates of ca sees of a client.
func connect(t *testing.T, certificates *identity.Certificates, ca *testca.CA, leaf *testca.Leaf) *identity.Peer {
	t.Helper()
	peer, _, err := accept(t, identity.NewTLS(certificates), listen(t), dialTLS(clientConfig(ca, leaf)))
	if err != nil {
		t.Fatal(err)
	}
	return peer
}

// paths are those of what testca writes to a folder.
func paths(dir string) identity.FileConfig {
	return identity.FileConfig{
		Certificate: filepath.Join(dir, "tls.crt"),
		Key:         filepath.Join(dir, "tls.key"),
		ClientCA:    filepath.Join(dir, "ca.crt"),
		TrustDomain: "example.org",
		Log:         slog.New(slog.DiscardHandler),
	}
}

func open(t *testing.T, cfg identity.FileConfig) *identity.Certificates {
	t.Helper()
	certificates, err := identity.OpenFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := certificates.Close(); err != nil {
			t.Error(err)
		}
	})
	return certificates
}

// server returns certificates of a server that trusts ca.
func server(t *testing.T, ca *testca.CA, change func(*identity.FileConfig)) *identity.Certificates {
	t.Helper()
	dir := t.TempDir()
	ca.Issue(testca.Spec{}).WritePEM(dir, ca)
	cfg := paths(dir)
	if change != nil {
		change(&cfg)
	}
	return open(t, cfg)
}

// checkPeer says what became of a peer: "" and who it is, "none", or what does not hold.
func checkPeer(t *testing.T, peer *identity.Peer, now time.Time) (string, identity.Caller) {
	t.Helper()
	caller, err := peer.Caller(now)
	var invalid *identity.InvalidError
	switch {
	case err == nil:
		return "", *caller
	case errors.Is(err, identity.ErrMissing):
		return "none", identity.Caller{}
	case errors.As(err, &invalid) && invalid.Source == identity.MTLS:
		return invalid.Check, identity.Caller{}
	}
	t.Fatal(err)
	return "", identity.Caller{}
}

func expectCheck(t *testing.T, peer *identity.Peer, want string) {
	t.Helper()
	if got, _ := checkPeer(t, peer, time.Now()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
