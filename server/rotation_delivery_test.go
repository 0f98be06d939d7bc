package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
	"github.com/spiffe/go-spiffe/v2/workloadapi"

	"github.com/promptassembly/promptassembly/client"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

const (
	rotationDomain  = "example.org"
	rotationServer  = "spiffe://example.org/prompt-assembly"
	rotationHarness = "spiffe://example.org/ns/prod/sa/harness"
)

const rotationPolicy = `version: 1
callers:
  - name: harness
    identities:
      - {source: mtls, spiffe: "spiffe://example.org/ns/*/sa/harness"}
    authorities: [current_turn]
    scopes:
      - exact: user:mei
`

// delivery is how a server and its clients get their certificates.
type delivery interface {
	// rotate replaces what both have.
	rotate(server, client *testca.Leaf, trusted ...*testca.CA)
	// server returns where a server has them from.
	server() server.TLS
	// client returns how a client of the server takes them, whatever they are at a time.
	client(t *testing.T) client.Option
}

// noLinks is why Windows has none of this.
const noLinks = "symbolic links need a privilege, and go-spiffe has no unix sockets"

// forEachDelivery runs a test with files, and with the Workload API.
func forEachDelivery(t *testing.T, test func(t *testing.T, deliver delivery)) {
	if runtime.GOOS == "windows" {
		t.Skip(noLinks)
	}
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		test(t, newFileDelivery(t))
	})
	t.Run("Workload API", func(t *testing.T) {
		t.Parallel()
		test(t, newWorkloadDelivery(t))
	})
}

// fileDelivery is one by files.
type fileDelivery struct{ ofServer, ofClient *mountedSecret }

func newFileDelivery(t *testing.T) fileDelivery {
	t.Helper()
	return fileDelivery{newMountedSecret(t), newMountedSecret(t)}
}

func (d fileDelivery) rotate(server, client *testca.Leaf, trusted ...*testca.CA) {
	d.ofServer.put(server, trusted...)
	d.ofClient.put(client, trusted...)
}

func (d fileDelivery) server() server.TLS {
	return server.TLS{
		Certificate: d.ofServer.path("tls.crt"), Key: d.ofServer.path("tls.key"),
		ClientCA: d.ofServer.path("ca.crt"), TrustDomain: rotationDomain,
	}
}

func (d fileDelivery) client(*testing.T) client.Option {
	return client.WithTLSFiles(client.TLSFiles{
		CA: d.ofClient.path("ca.crt"), Certificate: d.ofClient.path("tls.crt"), Key: d.ofClient.path("tls.key"),
		ServerID: rotationServer,
	})
}

// mountedSecret is a folder whose files are replaced all together, as Kubernetes mounts secrets.
type mountedSecret struct {
	t       *testing.T
	dir     string
	version int
}

func newMountedSecret(t *testing.T) *mountedSecret {
	t.Helper()
	s := &mountedSecret{t: t, dir: t.TempDir()}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		s.must(os.Symlink(filepath.Join("..data", name), s.path(name)))
	}
	return s
}

func (s *mountedSecret) path(name string) string { return filepath.Join(s.dir, name) }

func (s *mountedSecret) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// put replaces the files, and removes those before at once.
func (s *mountedSecret) put(leaf *testca.Leaf, trusted ...*testca.CA) {
	s.t.Helper()
	before, link := fmt.Sprintf("..%d", s.version), s.path("..data_tmp")
	s.version++
	next := fmt.Sprintf("..%d", s.version)
	s.must(os.Mkdir(s.path(next), 0o700))
	leaf.WritePEM(s.path(next), trusted...)
	s.must(os.Symlink(next, link))
	s.must(os.Rename(link, s.path("..data")))
	s.must(os.RemoveAll(s.path(before)))
}

// workloadDelivery is one by Workload APIs, one each as each has an identity of its own.
type workloadDelivery struct{ ofServer, ofClient *testca.WorkloadAPI }

func newWorkloadDelivery(t *testing.T) workloadDelivery {
	t.Helper()
	folder, err := os.MkdirTemp("", "spiffe") // whose name is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return workloadDelivery{
		testca.ServeWorkloadAPI(t, filepath.Join(folder, "server")),
		testca.ServeWorkloadAPI(t, filepath.Join(folder, "client")),
	}
}

func (d workloadDelivery) rotate(server, client *testca.Leaf, trusted ...*testca.CA) {
	d.ofServer.Rotate(server, trusted...)
	d.ofClient.Rotate(client, trusted...)
}

func (d workloadDelivery) server() server.TLS { return server.TLS{WorkloadAPI: d.ofServer.Address()} }

func (d workloadDelivery) client(t *testing.T) client.Option {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	source, err := workloadapi.NewX509Source(ctx, workloadapi.WithClientOptions(workloadapi.WithAddr(d.ofClient.Address())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	config := tlsconfig.MTLSClientConfig(source, source, tlsconfig.AuthorizeID(spiffeid.RequireFromString(rotationServer)))
	config.MinVersion = tls.VersionTLS13
	return client.WithTLS(config)
}

// issueFor returns a certificate that lives for a whole number of seconds, from the one that has begun.
func issueFor(ca *testca.CA, id string, life time.Duration) *testca.Leaf {
	from := time.Now().Truncate(time.Second)
	return ca.Issue(testca.Spec{URIs: []string{id}, NotBefore: from, NotAfter: from.Add(life)})
}

// serveRotating serves a server that has its certificates as delivered, and believes those that live for
// so long.
func serveRotating(t *testing.T, deliver delivery, shortestLife time.Duration) *observed {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(rotationPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	o := &observed{metrics: prometheus.NewRegistry()}
	log := slog.New(slog.DiscardHandler)
	secured := deliver.server()
	secured.ShortestLife = shortestLife
	access, err := server.OpenAccess(ctx, server.AccessConfig{Policy: path, TLS: secured, Logger: log, Metrics: o.metrics})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := access.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Server, o.address = listenWith(t, server.Config{Logger: log, Metrics: o.metrics, Access: access})
	return o
}
