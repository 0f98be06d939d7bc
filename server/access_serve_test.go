package server_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// exampleID returns a SPIFFE ID of the trust domain of all tests.
func exampleID(path string) string { return "spiffe://example.org" + path }

// guarded is a server that asks who calls, and what it asks by.
type guarded struct {
	*observed                // what Access counts is among its metrics
	access    *server.Access // logs for itself
	accessLog *lockedBuffer
	policy    string     // the path of the policy file
	ca        *testca.CA // nil: plaintext
}

// serveAccess serves a server with the certificates of an authority, or in plaintext if there is none.
func serveAccess(t testing.TB, ca *testca.CA, policy string, cfg server.Config) *guarded {
	t.Helper()
	dir := t.TempDir()
	g := &guarded{policy: filepath.Join(dir, "policy.yaml"), ca: ca, accessLog: new(lockedBuffer)}
	testca.Write(t, g.policy, []byte(policy))
	counted := prometheus.NewRegistry()
	access := server.AccessConfig{
		Policy: g.policy, Metrics: counted,
		Logger: slog.New(slog.NewJSONHandler(g.accessLog, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if ca != nil {
		ca.Issue(testca.Spec{URIs: []string{exampleID("/server")}}).WritePEM(dir, ca)
		access.TLS = server.TLS{
			Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
			ClientCA: filepath.Join(dir, "ca.crt"), TrustDomain: "example.org",
		}
	}
	var err error
	if g.access, err = server.OpenAccess(t.Context(), access); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.access.Close() })
	cfg.Access = g.access
	g.observed = observe(t, cfg, true)
	g.metrics.MustRegister(counted)
	return g
}

// serveUnix serves the server on a unix socket, too, and returns its target.
func (g *guarded) serveUnix(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "unix") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = g.Serve(listener) }()
	return "unix:" + path
}

// certified is a client with a certificate of an authority; without IDs, with none.
func certified(ca *testca.CA, ids ...string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: ca.Pool()}
	if len(ids) > 0 {
		config.Certificates = []tls.Certificate{ca.Issue(testca.Spec{URIs: ids}).TLS}
	}
	return config
}

// connect returns a connection to a target, in plaintext without a configuration of TLS, whose calls have
// these headers.
func connect(t testing.TB, target string, config *tls.Config, with headers) *grpc.ClientConn {
	t.Helper()
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(transport), grpc.WithPerRPCCredentials(with))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// as returns a connection to the server with a certificate for an ID.
func (g *guarded) as(t testing.TB, id string) *grpc.ClientConn {
	t.Helper()
	return connect(t, g.address, certified(g.ca, id), nil)
}

// bearing returns a connection to the server without a certificate, whose calls bear a token.
func (g *guarded) bearing(t testing.TB, token string) *grpc.ClientConn {
	t.Helper()
	var config *tls.Config
	if g.ca != nil {
		config = certified(g.ca)
	}
	return connect(t, g.address, config, bearer(token))
}

// headers are sent with each call.
type headers map[string]string

var _ credentials.PerRPCCredentials = headers{}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (h headers) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return h, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (headers) RequireTransportSecurity() bool { return false }

func bearer(token string) headers { return headers{"authorization": "Bearer " + token} }

func spec(id string) testca.Spec { return testca.Spec{URIs: []string{id}} }
