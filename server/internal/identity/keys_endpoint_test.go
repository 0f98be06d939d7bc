package identity_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

func authorityOf(tb testing.TB, server *httptest.Server) string {
	tb.Helper()
	return written(tb, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func anotherAuthority(tb testing.TB) string {
	tb.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, p256().Public(), p256())
	if err != nil {
		tb.Fatal(err)
	}
	return written(tb, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// tlsServer returns an endpoint with TLS; its complaints about clients are not for the tests' output.
func tlsServer(tb testing.TB, handler http.HandlerFunc) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	tb.Cleanup(server.Close)
	return server
}

// Keys as Kubernetes gives them out: by TLS with an authority of its own, to who has a token.
func TestKeysByURLWithAuthorityAndBearer(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
	var authorization atomic.Value
	server := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		authorization.Store(r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(keySet(t, jwk(t, rsaKey(), "k1", nil))))
	})
	bearer := written(t, "first\n")
	issuer := byURL
	issuer.Keys.URL, issuer.Keys.CAFile, issuer.Keys.BearerFile = server.URL, authorityOf(t, server), bearer
	tokens := tokens(t, issuer)
	accepted(t, tokens, token(t, claimsAt(today)))
	if got := authorization.Load(); got != "Bearer first" {
		t.Errorf("it is fetched with %q", got)
	}
	// The files count for the next fetch, which an unknown key asks for.
	write(t, bearer, "second")
	if got := check(t, tokens, byOtherRSA(t, "k2", claimsAt(today))); got != "unknown key" {
		t.Errorf("%q", got)
	}
	if got := authorization.Load(); got != "Bearer second" {
		t.Errorf("it is fetched with %q", got)
	}
	tokens.Close()
	server.Close()
}

func TestKeysByPlainURLOnLoopback(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(keySet(t, jwk(t, rsaKey(), "k1", nil))))
	}))
	defer server.Close()
	for _, host := range []string{"127.0.0.1", "localhost"} {
		issuer := byURL
		issuer.Keys.URL = strings.Replace(server.URL, "127.0.0.1", host, 1)
		accepted(t, tokens(t, issuer), token(t, claimsAt(today)))
	}
}

func TestFetchesThatFail(t *testing.T) {
	const secret = "a-secret-of-the-answer"
	good := keySet(t, jwk(t, rsaKey(), "k1", nil))
	var followed atomic.Bool
	server := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Secret", secret)
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/good", http.StatusFound)
		case "/good":
			followed.Store(true)
			_, _ = w.Write([]byte(good))
		case "/status":
			http.Error(w, good, http.StatusForbidden)
		case "/created":
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(good))
		case "/large":
			_, _ = w.Write([]byte(strings.Repeat(" ", 1<<20) + good))
		case "/headers":
			w.Header().Set("X-Large", strings.Repeat("x", 128<<10))
		case "/secret":
			_, _ = w.Write([]byte(secret))
		case "/early":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(good[:10]))
		case "/nonsense":
			hijacked, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = hijacked.Write([]byte(secret + "\r\n\r\n"))
				_ = hijacked.Close()
			}
		}
	})
	authority := authorityOf(t, server)
	for _, c := range []struct {
		name   string
		change func(*identity.Issuer)
		want   string
	}{
		{"a redirect", func(i *identity.Issuer) { i.Keys.URL += "/redirect" }, "redirects are not followed"},
		{"status 403", func(i *identity.Issuer) { i.Keys.URL += "/status" }, "status 403"},
		{"status 201", func(i *identity.Issuer) { i.Keys.URL += "/created" }, "status 201"},
		{"more than 1 MiB", func(i *identity.Issuer) { i.Keys.URL += "/large" }, "larger than 1048576 bytes"},
		{"large headers", func(i *identity.Issuer) { i.Keys.URL += "/headers" }, "not one of HTTP"},
		{"no key set", func(i *identity.Issuer) { i.Keys.URL += "/secret" }, "not a JSON Web Key Set"},
		{"an early end", func(i *identity.Issuer) { i.Keys.URL += "/early" }, "ends early"},
		{"not HTTP", func(i *identity.Issuer) { i.Keys.URL += "/nonsense" }, "not one of HTTP"},
		{"another authority", func(i *identity.Issuer) { i.Keys.CAFile = anotherAuthority(t) }, "authority that is not trusted"},
		{"another host", func(i *identity.Issuer) { i.Keys.URL = strings.Replace(i.Keys.URL, "127.0.0.1", "localhost", 1) }, "for another host"},
		{"nobody there", func(i *identity.Issuer) { i.Keys.URL = "https://127.0.0.1:1/" }, "dial tcp"},
		{"no file of authorities", func(i *identity.Issuer) { i.Keys.CAFile += ".absent" }, ".absent"},
		{"a file of other things", func(i *identity.Issuer) { i.Keys.CAFile = written(t, secret) }, "no certificate in PEM"},
		{"no bearer file", func(i *identity.Issuer) { i.Keys.BearerFile = authority + ".gone" }, ".gone"},
		{"an empty bearer file", func(i *identity.Issuer) { i.Keys.BearerFile = written(t, "\n") }, "empty"},
		{"a bearer of two lines", func(i *identity.Issuer) { i.Keys.BearerFile = written(t, secret+"\n"+secret) }, "the bearer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			issuer := byURL
			issuer.Keys.URL, issuer.Keys.CAFile, issuer.Keys.BearerFile = server.URL, authority, written(t, secret)
			c.change(&issuer)
			var log bytes.Buffer
			tokens := identity.NewTokens(identity.TokensConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err := tokens.Configure(context.Background(), []identity.Issuer{issuer}); err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(tokens.Problems(), "\n")
			tokens.Close() // before the log is read
			if !strings.Contains(problems, c.want) || !strings.Contains(log.String(), c.want) {
				t.Errorf("problems %q, log %q, want %q in both", problems, log.String(), c.want)
			}
			if strings.Contains(problems+log.String(), secret) {
				t.Errorf("a secret is told: %q, %q", problems, log.String())
			}
		})
	}
	if followed.Load() {
		t.Error("a redirect is followed")
	}
}
