package identity_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// reports collects what FileConfig.Failed and WorkloadConfig.Failed are told.
type reports struct {
	mu  sync.Mutex
	all []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err)
}

// take waits for n reports, and returns the last.
func (r *reports) take(t *testing.T, n int) error {
	t.Helper()
	var last error
	eventually(t, "what became of a reload is reported", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.all) > n {
			t.Fatalf("%d reports, want %d: %v", len(r.all), n, r.all)
		}
		if len(r.all) < n {
			return false
		}
		last = r.all[n-1]
		return true
	})
	return last
}

// served returns the certificate that a server with certificates shows.
func served(t *testing.T, certificates *identity.Certificates, ca *testca.CA) *testca.Leaf {
	t.Helper()
	_, conn, err := accept(t, identity.NewTLS(certificates), listen(t), dialTLS(clientConfig(ca, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return &testca.Leaf{TLS: tls.Certificate{Leaf: conn.(*tls.Conn).ConnectionState().PeerCertificates[0]}}
}

// secret is a folder whose files are swapped all together, as Kubernetes mounts secrets.
type secret struct {
	t       *testing.T
	dir     string
	version int
}

func newSecret(t *testing.T) *secret {
	t.Helper()
	s := &secret{t: t, dir: t.TempDir()}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		s.must(os.Symlink(filepath.Join("..data", name), filepath.Join(s.dir, name)))
	}
	return s
}

func (s *secret) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// put puts what write writes to a folder in the place of what there is.
func (s *secret) put(write func(dir string)) {
	s.t.Helper()
	version := func() string { return fmt.Sprintf("..%d", s.version) }
	before := filepath.Join(s.dir, version())
	s.version++
	next := filepath.Join(s.dir, version())
	s.must(os.Mkdir(next, 0o700))
	write(next)
	s.must(os.Symlink(version(), filepath.Join(s.dir, "..data_tmp")))
	s.must(os.Rename(filepath.Join(s.dir, "..data_tmp"), filepath.Join(s.dir, "..data")))
	s.must(os.RemoveAll(before))
}

func TestFilesThatChange(t *testing.T) {
	first, second := testca.New(t, "example.org"), testca.New(t, "example.org")
	files := newSecret(t)
	put := func(leaf *testca.Leaf, trusted ...*testca.CA) {
		t.Helper()
		files.put(func(dir string) { leaf.WritePEM(dir, trusted...) })
	}
	put(first.Issue(testca.Spec{}), first)
	var logged bytes.Buffer
	var told reports
	cfg := paths(files.dir)
	cfg.Log, cfg.Failed = slog.New(slog.NewTextHandler(&logged, nil)), told.add
	certificates, err := identity.OpenFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	succeeded := func(n int) {
		t.Helper()
		if err := told.take(t, n); err != nil {
			t.Fatal(err)
		}
	}
	old := connect(t, certificates, first, first.Issue(testca.Spec{URIs: []string{harnessID}}))
	expectCheck(t, old, "")

	// Another certificate, and the same authorities.
	before, _ := old.Caller(time.Now())
	renewed := first.Issue(testca.Spec{})
	put(renewed, first)
	succeeded(1)
	if !served(t, certificates, first).TLS.Leaf.Equal(renewed.TLS.Leaf) {
		t.Error("the server shows the certificate before")
	}
	if after, _ := old.Caller(time.Now()); after != before {
		t.Error("the same roots verified the same certificate twice")
	}

	// Both authorities for a while, and then the old one goes, under an open connection.
	put(renewed, first, second)
	succeeded(2)
	expectCheck(t, old, "")
	last := second.Issue(testca.Spec{})
	put(last, second)
	succeeded(3)
	expectCheck(t, old, "not trusted")
	expectCheck(t, connect(t, certificates, second, second.Issue(testca.Spec{URIs: []string{harnessID}})), "")

	// What does not fit together is not used, not even the authority that is back.
	files.put(func(dir string) {
		renewed.WritePEM(dir, first)
		testca.Write(t, filepath.Join(dir, "tls.key"), []byte("no key"))
	})
	if told.take(t, 4) == nil {
		t.Error("a key that is none was taken")
	}
	files.put(func(dir string) { renewed.WritePEM(dir) })
	if told.take(t, 5) == nil {
		t.Error("a set without authorities was taken")
	}
	expectCheck(t, old, "not trusted")
	if !served(t, certificates, second).TLS.Leaf.Equal(last.TLS.Leaf) {
		t.Error("the server no longer shows what it had")
	}
	put(renewed, first)
	succeeded(6)
	expectCheck(t, old, "")

	if err := certificates.Close(); err != nil {
		t.Fatal(err)
	}
	succeeded(6)
	if n := strings.Count(logged.String(), "level=ERROR"); n != 2 {
		t.Errorf("%d errors were logged, want 2:\n%s", n, logged.String())
	}
}

// Files that are no links are replaced one by one. What comes of the steps between is not said here.
func TestReloadOneByOne(t *testing.T) {
	ca := testca.New(t, "example.org")
	dir := t.TempDir()
	ca.Issue(testca.Spec{}).WritePEM(dir, ca)
	certificates := open(t, paths(dir))
	renewed := ca.Issue(testca.Spec{})
	renewed.WritePEM(dir)
	eventually(t, "the server shows the new certificate", func() bool {
		return served(t, certificates, ca).TLS.Leaf.Equal(renewed.TLS.Leaf)
	})
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	ca := testca.New(t, "example.org")
	tests := []struct {
		name   string
		change func(t *testing.T, dir string, cfg *identity.FileConfig)
		want   string
	}{
		{"no certificate", func(t *testing.T, dir string, _ *identity.FileConfig) { remove(t, dir, "tls.crt") }, "tls.crt: no such file"},
		{"no authorities", func(t *testing.T, dir string, _ *identity.FileConfig) { remove(t, dir, "ca.crt") }, "ca.crt: no such file"},
		{"the key of another", func(t *testing.T, dir string, _ *identity.FileConfig) {
			other := t.TempDir()
			ca.Issue(testca.Spec{}).WritePEM(other)
			testca.Write(t, filepath.Join(dir, "tls.key"), read(t, other, "tls.key"))
		}, "private key does not match public key"},
		{"expired", func(_ *testing.T, dir string, _ *identity.FileConfig) {
			ca.Issue(testca.Spec{NotAfter: time.Now().Add(-time.Second)}).WritePEM(dir)
		}, "expired on"},
		{"empty authorities", func(t *testing.T, dir string, _ *identity.FileConfig) {
			testca.Write(t, filepath.Join(dir, "ca.crt"), nil)
		}, "it holds no certificate"},
		{"authorities half there", func(t *testing.T, dir string, _ *identity.FileConfig) {
			text := read(t, dir, "ca.crt")
			testca.Write(t, filepath.Join(dir, "ca.crt"), append(text, text[:len(text)-20]...))
		}, "a PEM block is broken"},
		{"a client as authority", func(t *testing.T, dir string, _ *identity.FileConfig) {
			testca.Write(t, filepath.Join(dir, "ca.crt"), read(t, dir, "tls.crt"))
		}, "not an authority's"},
		{"a key as authority", func(t *testing.T, dir string, _ *identity.FileConfig) {
			testca.Write(t, filepath.Join(dir, "ca.crt"), read(t, dir, "tls.key"))
		}, "no CERTIFICATE"},
		{"no trust domain", func(_ *testing.T, _ string, cfg *identity.FileConfig) { cfg.TrustDomain = "" }, "need a trust domain"},
		{"a trust domain with a path", func(_ *testing.T, _ string, cfg *identity.FileConfig) { cfg.TrustDomain = "spiffe://example.org/a" }, "trust domain"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			ca.Issue(testca.Spec{}).WritePEM(dir, ca)
			cfg := paths(dir)
			test.change(t, dir, &cfg)
			certificates, err := identity.OpenFiles(cfg)
			if err == nil {
				_ = certificates.Close()
				t.Fatal("they were used")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q in it", err, test.want)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
