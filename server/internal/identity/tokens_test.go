package identity_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

func TestConfigureRefuses(t *testing.T) {
	good := issuerA(t, jwk(t, rsaKey(), "k1", nil))
	byURL := good
	byURL.Keys.File, byURL.Keys.URL = "", "https://a.example/jwks.json"
	change := func(i identity.Issuer, f func(*identity.Issuer)) []identity.Issuer {
		f(&i)
		return []identity.Issuer{i}
	}
	url := func(s string) []identity.Issuer { return change(byURL, func(i *identity.Issuer) { i.Keys.URL = s }) }
	file := func(content string) []identity.Issuer {
		return change(good, func(i *identity.Issuer) { i.Keys.File = written(t, content) })
	}
	private := toJSON(t, object{"keys": []object{jwk(t, rsaKey(), "k1", object{"d": "AQ"})}})
	inForce := tokens(t, good)
	for _, c := range []struct {
		name    string
		issuers []identity.Issuer
		want    string
	}{
		{"no name", change(good, func(i *identity.Issuer) { i.Name = "" }), "name"},
		{"a name with a line break", change(good, func(i *identity.Issuer) { i.Name = "a\nb" }), "name"},
		{"no keys", change(good, func(i *identity.Issuer) { i.Keys.File = "" }), "one of them"},
		{"keys from both", change(good, func(i *identity.Issuer) { i.Keys.URL = byURL.Keys.URL }), "one of them"},
		{"a bearer for a file", change(good, func(i *identity.Issuer) { i.Keys.BearerFile = "x" }), "bearer"},
		{"no audience", change(good, func(i *identity.Issuer) { i.Audiences = nil }), "audience"},
		{"an empty audience", change(good, func(i *identity.Issuer) { i.Audiences = []string{""} }), "audience"},
		{"HS256", change(good, func(i *identity.Issuer) { i.Algorithms = []string{"HS256"} }), "HS256"},
		{"none", change(good, func(i *identity.Issuer) { i.Algorithms = []string{"none"} }), "none"},
		{"no pointer", change(good, func(i *identity.Issuer) { i.Claims = []string{"tenant"} }), "/tenant"},
		{"the whole document", change(good, func(i *identity.Issuer) { i.Claims = []string{""} }), "/tenant"},
		{"a wrong escape", change(good, func(i *identity.Issuer) { i.Claims = []string{"/a~2"} }), "/tenant"},
		{"a trust domain with a scheme", change(good, func(i *identity.Issuer) { i.SPIFFE = true }), "trust domain"},
		{"twice", []identity.Issuer{good, good}, "twice"},
		{"a trust domain and an iss of one name", append(
			change(good, func(i *identity.Issuer) { i.Name = "example.org" }),
			change(good, func(i *identity.Issuer) { i.Name, i.SPIFFE = "example.org", true })...), "twice"},

		{"http beyond loopback", url("http://a.example/jwks.json"), "https"},
		{"http to an address", url("http://192.0.2.1/jwks.json"), "https"},
		{"http to a name like loopback", url("http://127.0.0.1.example/jwks.json"), "https"},
		{"http to a name like localhost", url("http://localhost.example/"), "https"},
		{"file scheme", url("file:///etc/jwks.json"), "absolute"},
		{"no scheme", url("a.example/jwks.json"), "absolute"},
		{"a password", url("https://user:secret@a.example/"), "user"},
		{"an authority for http", change(byURL, func(i *identity.Issuer) { i.Keys.URL, i.Keys.CAFile = "http://127.0.0.1:1/", "ca.pem" }), "https"},

		{"no file", change(good, func(i *identity.Issuer) { i.Keys.File = filepath.Join(t.TempDir(), "absent") }), "absent"},
		{"an empty file", file(""), "not a JSON Web Key Set"},
		{"no key set", file(`{"key":[]}`), "not a JSON Web Key Set"},
		{"a key alone", file(toJSON(t, jwk(t, rsaKey(), "k1", nil))), "not a JSON Web Key Set"},
		{"keys twice", file(`{"keys":[],"keys":[]}`), "not a JSON Web Key Set"},
		{"no keys in the set", file(`{"keys":[]}`), "no key that can be used"},
		{"a symmetric key", file(`{"keys":[{"kty":"oct","kid":"k1","k":"c2VjcmV0"}]}`), "no key that can be used"},
		{"a private key", file(private), "no key that can be used"},
		{"a duplicate member", file(strings.Replace(keySet(t, jwk(t, rsaKey(), "k1", nil)), `"kid":`, `"kid":"k2","kid":`, 1)), "no key that can be used"},
		{"too large", file(strings.Repeat(" ", 1<<20) + `{"keys":[]}`), "1048576"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := inForce.Configure(context.Background(), c.issuers)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want one with %q", err, c.want)
			}
			accepted(t, inForce, token(t, claimsAt(today)))
		})
	}
}

func TestReload(t *testing.T) {
	var log bytes.Buffer
	issuer := issuerA(t, jwk(t, rsaKey(), "k1", nil))
	now := today
	tokens := identity.NewTokens(identity.TokensConfig{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }})
	defer tokens.Close()
	if err := tokens.Configure(context.Background(), []identity.Issuer{issuer}); err != nil {
		t.Fatal(err)
	}
	if got := tokens.Files(); !slices.Equal(got, []string{issuer.Keys.File}) {
		t.Errorf("the files are %q", got)
	}
	first := token(t, claimsAt(today))
	byOther := func(id string) string {
		return signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"`+id+`"}`, toJSON(t, claimsAt(today)))
	}
	accepted(t, tokens, first)

	write(t, issuer.Keys.File, "{")
	for range 3 {
		tokens.Reload()
	}
	accepted(t, tokens, first)
	problems := tokens.Problems()
	if len(problems) != 1 || !strings.Contains(problems[0], "https://a.example") || !strings.Contains(problems[0], "2026-05-04T12:00:00Z") {
		t.Errorf("problems with a broken file: %q", problems)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d lines for a broken file:\n%s", n, log.String())
	}
	if err := os.Remove(issuer.Keys.File); err != nil {
		t.Fatal(err)
	}
	tokens.Reload()
	accepted(t, tokens, first)

	write(t, issuer.Keys.File, keySet(t, jwk(t, rsaKey(), "k1", nil), jwk(t, otherRSA(), "k2", nil)))
	tokens.Reload()
	if problems := tokens.Problems(); problems != nil {
		t.Errorf("problems with a whole file: %q", problems)
	}
	accepted(t, tokens, first)
	accepted(t, tokens, byOther("k2"))

	// A key that is gone takes the tokens with it that are remembered, also where another has its ID.
	write(t, issuer.Keys.File, keySet(t, jwk(t, otherRSA(), "k1", nil)))
	tokens.Reload()
	if got := check(t, tokens, first); got != "signature" {
		t.Errorf("the token of a key that was replaced: %q", got)
	}
	if got := check(t, tokens, byOther("k2")); got != "unknown key" {
		t.Errorf("the token of a key that was removed: %q", got)
	}
	accepted(t, tokens, byOther("k1"))

	write(t, issuer.Keys.File, keySet(t))
	tokens.Reload()
	if got := check(t, tokens, byOther("k1")); got != "unknown key" {
		t.Errorf("a token when all keys are removed: %q", got)
	}
	if problems := tokens.Problems(); len(problems) != 1 || !strings.Contains(problems[0], "no key") {
		t.Errorf("problems without a key: %q", problems)
	}
}

// A token is remembered no longer than it would be verified.
func TestRememberedTokens(t *testing.T) {
	now := today
	a := issuerA(t, jwk(t, rsaKey(), "k1", nil))
	tokens := tokensAt(t, func() time.Time { return now }, a)
	valid := token(t, claimsAt(today))
	first := accepted(t, tokens, valid)
	if accepted(t, tokens, valid) != first {
		t.Error("it is verified anew")
	}
	now = today.Add(10*time.Minute + 29*time.Second)
	accepted(t, tokens, valid)
	now = today.Add(10*time.Minute + 30*time.Second)
	if got := check(t, tokens, valid); got != "expired" {
		t.Errorf("after its time: %q", got)
	}
	now = today.Add(-31 * time.Second)
	if got := check(t, tokens, valid); got != "not yet valid" {
		t.Errorf("before its time: %q", got)
	}
	now = today
	accepted(t, tokens, valid)

	ctx := context.Background()
	if err := tokens.Configure(ctx, []identity.Issuer{a}); err != nil {
		t.Fatal(err)
	}
	if tokens.Remembered() != 1 {
		t.Error("an issuer that stays forgets its tokens")
	}
	strict := a
	strict.Audiences = []string{"other"}
	if err := tokens.Configure(ctx, []identity.Issuer{strict}); err != nil {
		t.Fatal(err)
	}
	if got := check(t, tokens, valid); got != "audience" {
		t.Errorf("after another audience is demanded: %q", got)
	}
	if err := tokens.Configure(ctx, []identity.Issuer{a}); err != nil {
		t.Fatal(err)
	}
	accepted(t, tokens, valid)
	if err := tokens.Configure(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got := check(t, tokens, valid); got != "issuer" {
		t.Errorf("without its issuer: %q", got)
	}
}

// An issuer that is added takes over the tokens that it is named in.
func TestRememberedTokenOfAnotherIssuer(t *testing.T) {
	domain := identity.Issuer{Name: "example.org", SPIFFE: true, Audiences: []string{"prompt-assembly"}, Keys: jwks.Location{File: written(t, keySet(t, jwk(t, rsaKey(), "k1", nil)))}}
	tokens := tokens(t, domain)
	svid := token(t, with(claimsAt(today), object{"sub": "spiffe://example.org/agent"}))
	if c := accepted(t, tokens, svid); !c.SPIFFE {
		t.Errorf("%+v", c)
	}
	if err := tokens.Configure(context.Background(), []identity.Issuer{domain, issuerA(t, jwk(t, rsaKey(), "k1", nil))}); err != nil {
		t.Fatal(err)
	}
	if c := accepted(t, tokens, svid); c.SPIFFE || c.Issuer != "https://a.example" {
		t.Errorf("%+v", c)
	}
}

func TestMemoryOfTokensIsBounded(t *testing.T) {
	tokens := tokens(t, issuerA(t, jwk(t, edKey(), "ed", nil)))
	claims := claimsAt(today)
	for n := range 4196 {
		valid := signed(t, "EdDSA", edKey(), `{"alg":"EdDSA","kid":"ed"}`, toJSON(t, with(claims, object{"sub": strconv.Itoa(n)})))
		accepted(t, tokens, valid)
		check(t, tokens, valid[:len(valid)-4]+"AAAA")
	}
	if n := tokens.Remembered(); n != 4096 {
		t.Errorf("%d tokens are remembered", n)
	}
}

func TestClosed(t *testing.T) {
	tokens := tokens(t, issuerA(t, jwk(t, rsaKey(), "k1", nil)))
	valid := token(t, claimsAt(today))
	accepted(t, tokens, valid)
	tokens.Close()
	tokens.Close()
	if got := check(t, tokens, valid); got != "issuer" {
		t.Errorf("after Close: %q", got)
	}
	if err := tokens.Configure(context.Background(), nil); err == nil {
		t.Error("it can be configured after Close")
	}
}
