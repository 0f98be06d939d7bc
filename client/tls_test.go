package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/promptassembly/promptassembly/client"
	"github.com/promptassembly/promptassembly/client/internal/testca"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// write puts text into a file of a folder and returns its path.
func write(t testing.TB, folder, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// cuttable is a listener whose connections a test can end.
type cuttable struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cuttable) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// caller answers with the common name of the caller's certificate, or "nobody".
func caller(ctx context.Context, _ int) (*pb.ListTokenizersResponse, error) {
	p, _ := peer.FromContext(ctx)
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
		return good(info.State.PeerCertificates[0].Subject.CommonName), nil
	}
	return good("nobody"), nil
}

// tlsServer runs a server that answers with the caller's name.
func tlsServer(t testing.TB, config *tls.Config) *cuttable {
	listener := &cuttable{Listener: listen(t)}
	serveFake(t, listener, caller, grpc.Creds(credentials.NewTLS(config)))
	return listener
}

func TestTLSFiles(t *testing.T) {
	const id = "spiffe://example.org/server"
	ca, other := testca.New(t), testca.New(t)
	folder := t.TempDir()
	trusted := write(t, folder, "ca.pem", append([]byte("a comment\n"), ca.PEM()...))
	both := write(t, folder, "both.pem", append(other.PEM(), ca.PEM()...))
	another := write(t, folder, "other.pem", other.PEM())
	pem, key := ca.Issue(t, "me")
	certificate, keyFile := write(t, folder, "me.pem", pem), write(t, folder, "me.key", key)

	by := func(names ...string) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{ca.Certificate(t, names...)}, ClientAuth: tls.RequestClientCert}
	}
	old, picky := by("127.0.0.1"), by("127.0.0.1")
	old.MaxVersion = tls.VersionTLS12
	picky.ClientAuth, picky.ClientCAs = tls.RequestClientCert, other.Pool()
	for name, test := range map[string]struct {
		server *tls.Config
		files  client.TLSFiles
		want   string // who the server says is calling
		fails  string // or what the failure tells
	}{
		"an address":           {by("127.0.0.1"), client.TLSFiles{CA: trusted}, "nobody", ""},
		"two authorities":      {by("127.0.0.1"), client.TLSFiles{CA: both}, "nobody", ""},
		"a certificate":        {by("127.0.0.1"), client.TLSFiles{CA: trusted, Certificate: certificate, Key: keyFile}, "me", ""},
		"unknown authority":    {picky, client.TLSFiles{CA: trusted, Certificate: certificate, Key: keyFile}, "me", ""},
		"a host":               {by("example.com"), client.TLSFiles{CA: trusted, ServerName: "example.com"}, "nobody", ""},
		"an ID":                {by(id), client.TLSFiles{CA: trusted, ServerID: id}, "nobody", ""},
		"an ID, and a host":    {by("x", id), client.TLSFiles{CA: trusted, ServerID: id}, "nobody", ""},
		"another address":      {by("127.0.0.2"), client.TLSFiles{CA: trusted}, "", "127.0.0.1"},
		"another host":         {by("127.0.0.1"), client.TLSFiles{CA: trusted, ServerName: "example.com"}, "", "example.com"},
		"another authority":    {by("127.0.0.1"), client.TLSFiles{CA: another}, "", "unknown authority"},
		"the system's":         {by("127.0.0.1"), client.TLSFiles{}, "", "x509: "},
		"another ID":           {by("spiffe://example.org/other"), client.TLSFiles{CA: trusted, ServerID: id}, "", "the server is spiffe://example.org/other"},
		"a longer ID":          {by(id + "/x"), client.TLSFiles{CA: trusted, ServerID: id}, "", "the server is " + id + "/x"},
		"another domain":       {by("spiffe://example.net/server"), client.TLSFiles{CA: trusted, ServerID: id}, "", "example.net"},
		"no ID":                {by("127.0.0.1"), client.TLSFiles{CA: trusted, ServerID: id}, "", "no URI SAN"},
		"two IDs":              {by(id, "spiffe://example.org/other"), client.TLSFiles{CA: trusted, ServerID: id}, "", "more than one URI SAN"},
		"an ID by another":     {by(id), client.TLSFiles{CA: another, ServerID: id}, "", "unknown authority"},
		"an ID for an address": {by(id), client.TLSFiles{CA: trusted}, "", "127.0.0.1"},
		"TLS 1.2":              {old, client.TLSFiles{CA: trusted}, "", "protocol version"},
	} {
		t.Run(name, func(t *testing.T) {
			address := tlsServer(t, test.server).Addr().String()
			opts := []client.Option{client.WithTLSFiles(test.files), client.WithFailFast(), noPause()}
			one, err := client.Dial(address, opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer one.Close()
			for _, c := range []*client.Client{one, dial(t, []string{address}, opts...)} {
				answer, err := list(t.Context(), c)
				if test.fails == "" && (err != nil || answer.GetUnicodeVersion() != test.want) {
					t.Errorf("got %v, %v", answer, err)
				}
				if test.fails != "" {
					if failed := failedWith(t, err, codes.Unavailable); !strings.Contains(failed.Error(), test.fails) {
						t.Errorf("it says %q, want %q in it", failed, test.fails)
					}
				}
			}
		})
	}
}

// Of the options for TLS the last one counts.
func TestLastTLSCounts(t *testing.T) {
	ca := testca.New(t)
	path := write(t, t.TempDir(), "ca.pem", ca.PEM())
	address := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{ca.Certificate(t, "127.0.0.1", "example.com")}}).Addr().String()
	for _, opts := range [][]client.Option{
		{client.WithTLS(&tls.Config{ServerName: "example.net"}), client.WithTLSFiles(client.TLSFiles{CA: path})},
		{client.WithTLSFiles(client.TLSFiles{CA: "none"}), client.WithTLS(&tls.Config{RootCAs: ca.Pool()})},
	} {
		if _, err := list(t.Context(), dial(t, []string{address}, append(opts, client.WithFailFast())...)); err != nil {
			t.Error(err)
		}
	}
}

func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	ca := testca.New(t)
	folder := t.TempDir()
	trusted := write(t, folder, "ca.pem", ca.PEM())
	pem, key := ca.Issue(t, "me")
	_, otherKey := ca.Issue(t, "other")
	certificate, keyFile := write(t, folder, "me.pem", pem), write(t, folder, "me.key", key)
	wrongKey := write(t, folder, "other.key", otherKey)
	empty, none := write(t, folder, "empty", nil), filepath.Join(folder, "none")
	broken := write(t, folder, "broken", bytes.Replace(key, []byte("M"), []byte("?"), 1))

	for name, test := range map[string]struct {
		files client.TLSFiles
		path  string // of the FileError; empty: none
		want  string
	}{
		"no such CA":           {client.TLSFiles{CA: none}, none, "no such file"},
		"a CA without any":     {client.TLSFiles{CA: keyFile}, keyFile, "no certificate in PEM form"},
		"an empty CA":          {client.TLSFiles{CA: empty}, empty, "no certificate in PEM form"},
		"a folder":             {client.TLSFiles{CA: folder}, folder, "directory"},
		"no such certificate":  {client.TLSFiles{Certificate: none, Key: keyFile}, none, "no such file"},
		"no such key":          {client.TLSFiles{Certificate: certificate, Key: none}, none, "no such file"},
		"the key of another":   {client.TLSFiles{Certificate: certificate, Key: wrongKey}, certificate, "does not match"},
		"a broken key":         {client.TLSFiles{Certificate: certificate, Key: broken}, certificate, broken},
		"an empty certificate": {client.TLSFiles{Certificate: empty, Key: keyFile}, empty, "PEM"},
		"no key":               {client.TLSFiles{Certificate: certificate}, "", "go together"},
		"no certificate":       {client.TLSFiles{Key: keyFile}, "", "go together"},
		"two names":            {client.TLSFiles{CA: trusted, ServerName: "x", ServerID: "spiffe://x/y"}, "", "cannot go with"},
		"an ID of no CA":       {client.TLSFiles{ServerID: "spiffe://x/y"}, "", "needs CA"},
		"no ID":                {client.TLSFiles{CA: trusted, ServerID: "x/y"}, "", "scheme"},
		"a trust domain":       {client.TLSFiles{CA: trusted, ServerID: "spiffe://x"}, "", "no path"},
	} {
		t.Run(name, func(t *testing.T) {
			_, one := client.Dial("localhost:1", client.WithTLSFiles(test.files))
			_, all := client.DialAll([]string{"localhost:1"}, client.WithTLSFiles(test.files))
			for _, err := range []error{one, all} {
				if err == nil || !strings.HasPrefix(err.Error(), "client: ") || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("got %v, want %q in it", err, test.want)
				}
				var path string
				if file, ok := errors.AsType[*client.FileError](err); ok {
					path = file.Path
				}
				if path != test.path || strings.Count(err.Error(), none) > 1 {
					t.Errorf("it is of the file %q, want %q: %v", path, test.path, err)
				}
				if errors.Is(err, fs.ErrNotExist) != (test.path == none) {
					t.Errorf("whether the file exists: %v", err)
				}
			}
		})
	}
}

// mount fills a folder as secrets are mounted: its files are links through a link, which is swapped.
type mount struct {
	folder  string
	version int
}

func (m *mount) put(t *testing.T, files map[string][]byte) {
	t.Helper()
	m.version++
	data := "..data" + strings.Repeat("x", m.version)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Mkdir(filepath.Join(m.folder, data), 0o700))
	for name, text := range files {
		write(t, filepath.Join(m.folder, data), name, text)
		if m.version == 1 {
			check(os.Symlink(filepath.Join("..data", name), filepath.Join(m.folder, name)))
		}
	}
	check(os.Symlink(data, filepath.Join(m.folder, "..new")))
	check(os.Rename(filepath.Join(m.folder, "..new"), filepath.Join(m.folder, "..data")))
}

// Certificates and authorities that are replaced are those of the next connection, and no call fails.
func TestFilesAreReplaced(t *testing.T) {
	first, second := testca.New(t), testca.New(t)
	var own atomic.Pointer[tls.Certificate]
	own.Store(new(first.Certificate(t, "127.0.0.1")))
	server := tlsServer(t, &tls.Config{
		ClientAuth:     tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.Load(), nil },
	})
	secrets := &mount{folder: t.TempDir()}
	put := func(name string, ca *testca.CA) {
		certificate, key := ca.Issue(t, name)
		secrets.put(t, map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": ca.PEM()})
	}
	put("one", first)
	c := dial(t, []string{server.Addr().String()}, client.WithTLSFiles(client.TLSFiles{
		CA:          filepath.Join(secrets.folder, "ca.crt"),
		Certificate: filepath.Join(secrets.folder, "tls.crt"),
		Key:         filepath.Join(secrets.folder, "tls.key"),
	}))
	expect := func(want string) {
		t.Helper()
		if answer, err := list(t.Context(), c); err != nil || answer.GetUnicodeVersion() != want {
			t.Fatalf("got %v, %v, want %s", answer, err, want)
		}
	}
	expect("one")
	put("two", first)
	expect("one") // over the connection that exists
	server.cut()
	expect("two")

	own.Store(new(second.Certificate(t, "127.0.0.1")))
	put("three", second)
	expect("two")
	server.cut()
	expect("three")

	own.Store(new(first.Certificate(t, "127.0.0.1"))) // whose authority is gone
	server.cut()
	impatient := dial(t, []string{server.Addr().String()}, client.WithFailFast(), noPause(),
		client.WithTLSFiles(client.TLSFiles{CA: filepath.Join(secrets.folder, "ca.crt")}))
	_, err := list(t.Context(), impatient)
	_ = failedWith(t, err, codes.Unavailable)
}

// clock is a time that a test sets.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// While a file cannot be used, what it held before is, for a minute.
func TestFilesInTheMiddleOfAChange(t *testing.T) {
	ca := testca.New(t)
	server := tlsServer(t, &tls.Config{
		ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{ca.Certificate(t, "127.0.0.1")},
	})
	folder := t.TempDir()
	certificate, key := ca.Issue(t, "one")
	path, keyPath := write(t, folder, "tls.crt", certificate), write(t, folder, "tls.key", key)
	var clock clock
	c := dial(t, []string{server.Addr().String()}, client.WithClock(clock.now), client.WithFailFast(), noPause(),
		client.WithTLSFiles(client.TLSFiles{CA: write(t, folder, "ca.crt", ca.PEM()), Certificate: path, Key: keyPath}))
	expect := func(want string) {
		t.Helper()
		var err error
		var answer *pb.ListTokenizersResponse
		for range 50 { // the client may not know yet that the connection is gone
			if answer, err = list(t.Context(), c); err == nil {
				break
			}
		}
		if answer.GetUnicodeVersion() != want {
			t.Fatalf("got %v, %v, want %s", answer, err, want)
		}
	}
	expect("one")

	next, nextKey := ca.Issue(t, "two")
	write(t, folder, "tls.crt", next) // and the key not yet
	server.cut()
	expect("one")
	clock.advance(time.Minute + 1)
	server.cut()
	// Which of its attempts meet a connection that is just being made is not said.
	for {
		_, err := list(t.Context(), c)
		if failed := failedWith(t, err, codes.Unavailable); strings.Contains(failed.Error(), path+": with the key "+keyPath) {
			break
		}
	}
	write(t, folder, "tls.key", nextKey)
	waiting := dial(t, []string{server.Addr().String()}, client.WithTLSFiles(client.TLSFiles{
		CA: filepath.Join(folder, "ca.crt"), Certificate: path, Key: keyPath,
	}))
	if answer, err := list(t.Context(), waiting); err != nil || answer.GetUnicodeVersion() != "two" {
		t.Errorf("got %v, %v", answer, err)
	}
}
