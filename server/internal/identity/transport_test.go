package identity_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

func TestHandshakesThatFail(t *testing.T) {
	ca := testca.New(t, "example.org")
	harnessLeaf := ca.Issue(testca.Spec{URIs: []string{harnessID}})
	stolen := *harnessLeaf
	stolen.TLS.PrivateKey = ca.Issue(testca.Spec{}).TLS.PrivateKey
	long := *harnessLeaf
	for range 10 {
		long.TLS.Certificate = append(long.TLS.Certificate, ca.Certificate.Raw)
	}
	many, large := make([]string, 31), strings.Repeat("a", 8<<10) // with two addresses, 33 names
	for i := range many {
		many[i] = fmt.Sprintf("a%d.example.org", i)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 4352)
	if err != nil {
		t.Fatal(err)
	}
	withLongKey := *harnessLeaf // in an authority that nobody trusts
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	authority, err := x509.CreateCertificate(rand.Reader, template, template, rsaKey.Public(), rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	withLongKey.TLS.Certificate = append(withLongKey.TLS.Certificate[:1:1], authority)
	tests := []struct {
		name   string
		leaf   *testca.Leaf
		change func(*tls.Config)
	}{
		{"many names", ca.Issue(testca.Spec{URIs: []string{harnessID}, DNSNames: many}), func(*tls.Config) {}},
		{"more than 8 KiB", ca.Issue(testca.Spec{URIs: []string{harnessID, "spiffe://example.org/" + large}}), func(*tls.Config) {}},
		{"a long key", &withLongKey, func(*tls.Config) {}},
		{"TLS 1.2", harnessLeaf, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }},
		{"another protocol", harnessLeaf, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
		{"no protocol", harnessLeaf, func(c *tls.Config) { c.NextProtos = nil }},
		{"a certificate without its key", &stolen, func(*tls.Config) {}},
		{"a chain of 11", &long, func(*tls.Config) {}},
	}
	creds := identity.NewTLS(server(t, ca, nil))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := clientConfig(ca, test.leaf)
			test.change(config)
			if _, _, err := accept(t, creds, listen(t), dialTLS(config)); err == nil {
				t.Error("it connected")
			}
		})
	}
}

// A client that says nothing is let go when the deadline of its connection passes.
func TestHandshakeHasADeadline(t *testing.T) {
	listener := listen(t)
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	raw, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	_ = raw.SetDeadline(time.Now().Add(10 * time.Millisecond))
	if _, _, err := identity.NewTLS(server(t, testca.New(t, "example.org"), nil)).ServerHandshake(raw); !os.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestNoSessionIsResumed(t *testing.T) {
	ca := testca.New(t, "example.org")
	creds := identity.NewTLS(server(t, ca, nil))
	config := clientConfig(ca, ca.Issue(testca.Spec{URIs: []string{harnessID}}))
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for range 2 {
		p, conn, err := accept(t, creds, listen(t), dialTLS(config))
		if err != nil {
			t.Fatal(err)
		}
		expectCheck(t, p, "")
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // a ticket would come first
		_, _ = conn.Read(make([]byte, 1))
		if conn.(*tls.Conn).ConnectionState().DidResume {
			t.Error("a session was resumed")
		}
		if _, ok := config.ClientSessionCache.Get("127.0.0.1"); ok {
			t.Error("the server gave a ticket")
		}
	}
}

func TestNoClientCertificateIsAskedFor(t *testing.T) {
	ca := testca.New(t, "example.org")
	certificates := server(t, ca, func(c *identity.FileConfig) { c.ClientCA, c.TrustDomain = "", "" })
	config := clientConfig(ca, nil)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		t.Error("it was asked for")
		return &tls.Certificate{}, nil
	}
	p, _, err := accept(t, identity.NewTLS(certificates), listen(t), dialTLS(config))
	if err != nil {
		t.Fatal(err)
	}
	expectCheck(t, p, "none")
}

// wrapping hides what is special about the addresses of its connections, but lets them be unwrapped.
type wrapping struct{ net.Listener }

func (l wrapping) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return wrappingConn{conn}, err
}

type wrappingConn struct{ net.Conn }

func (c wrappingConn) RemoteAddr() net.Addr { return wrappingAddr{c.Conn.RemoteAddr()} }

type wrappingAddr struct{ net.Addr }

func (a wrappingAddr) Unwrap() net.Addr { return a.Addr }

func TestWhatAConnectionTells(t *testing.T) {
	ca := testca.New(t, "example.org")
	secure, plain := identity.NewTLS(server(t, ca, nil)), identity.NewPlaintext()
	dial := dialTLS(clientConfig(ca, nil))
	unix := func(t *testing.T) net.Listener {
		dir, err := os.MkdirTemp("", "socket") // short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		listener, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return listener
	}
	tests := []struct {
		name     string
		creds    credentials.TransportCredentials
		listener net.Listener
		dial     func(string, string) (net.Conn, error)
		level    credentials.SecurityLevel
		user     bool
	}{
		{"plaintext on loopback", plain, wrapping{identity.WithUnixUsers(listen(t))}, net.Dial, credentials.NoSecurity, false},
		{"plaintext on a unix socket", plain, identity.WithUnixUsers(unix(t)), net.Dial, credentials.NoSecurity, true},
		{"wrapped", plain, wrapping{wrapping{identity.WithUnixUsers(unix(t))}}, net.Dial, credentials.NoSecurity, true},
		{"nobody asks for the user", plain, unix(t), net.Dial, credentials.NoSecurity, false},
		{"TLS on loopback", secure, listen(t), dial, credentials.PrivacyAndIntegrity, false},
		{"TLS on a unix socket", secure, wrapping{identity.WithUnixUsers(unix(t))}, dial, credentials.PrivacyAndIntegrity, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, _, err := accept(t, test.creds.Clone(), test.listener, test.dial)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Private() {
				t.Error("it is not private")
			}
			if level := p.GetCommonAuthInfo().SecurityLevel; level != test.level {
				t.Errorf("security level %s, want %s", level, test.level)
			}
			uid, ok := p.UnixUser()
			if want := test.user && usersKnown(); ok != want || ok && int(uid) != os.Getuid() {
				t.Errorf("user %d, %t, want %d, %t", uid, ok, os.Getuid(), want)
			}
			expectCheck(t, p, "none")
		})
	}
}

func usersKnown() bool { return runtime.GOOS == "linux" && os.Getuid() != 65534 }

// remote has an address that is not on loopback at one end.
type remote struct {
	net.Conn
	local, other net.Addr
}

func (r remote) LocalAddr() net.Addr  { return r.local }
func (r remote) RemoteAddr() net.Addr { return r.other }

func TestPlaintextIsPrivateOnLoopbackAlone(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	tests := []struct {
		local, remote net.Addr
		want          bool
	}{
		{tcp("127.0.0.1"), tcp("127.9.9.9"), true},
		{tcp("::1"), tcp("::1"), true},
		{tcp("::ffff:127.0.0.1"), tcp("127.0.0.1"), true},
		{tcp("127.0.0.1"), tcp("192.0.2.1"), false},
		{tcp("192.0.2.1"), tcp("127.0.0.1"), false},
		{tcp("192.0.2.1"), tcp("192.0.2.1"), false},
		{&net.UDPAddr{IP: net.ParseIP("127.0.0.1")}, &net.UDPAddr{IP: net.ParseIP("127.0.0.1")}, false},
	}
	for _, test := range tests {
		_, info, err := identity.NewPlaintext().ServerHandshake(remote{local: test.local, other: test.remote})
		if err != nil {
			t.Fatal(err)
		}
		if got := info.(*identity.Peer).Private(); got != test.want {
			t.Errorf("%s to %s: private is %t, want %t", test.remote, test.local, got, test.want)
		}
	}
}

func TestGRPC(t *testing.T) {
	ca := testca.New(t, "example.org")
	listener := listen(t)
	var called identity.Caller
	s := grpc.NewServer(grpc.Creds(identity.NewTLS(server(t, ca, nil))), grpc.UnaryInterceptor(
		func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			p, _ := peer.FromContext(ctx)
			caller, err := p.AuthInfo.(*identity.Peer).Caller(time.Now())
			if err != nil {
				return nil, err
			}
			called = *caller
			return handler(ctx, request)
		}))
	healthpb.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(listener) }()
	defer s.Stop()
	config := clientConfig(ca, ca.Issue(testca.Spec{URIs: []string{harnessID}}))
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if called.Name != harnessID {
		t.Errorf("called by %q, want %q", called.Name, harnessID)
	}
}
