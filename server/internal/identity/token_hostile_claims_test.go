package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

func TestHostileClaims(t *testing.T) {
	several := issuerA(t, jwk(t, rsaKey(), "k1", nil))
	several.Name, several.SeveralAudiences = "https://several.example", true
	b := issuerA(t, jwk(t, otherRSA(), "k1", nil))
	b.Name = "https://b.example"
	tokens := tokens(t, issuerA(t, jwk(t, rsaKey(), "k1", nil)), several, b)
	at := func(d time.Duration) int64 { return today.Add(d).Unix() }
	const s = time.Second
	for _, c := range []struct {
		name    string
		changed object
		want    string
	}{
		{"as they are", nil, ""},
		{"no exp", object{"exp": nil}, "expiry"},
		{"exp that is a string", object{"exp": "1999999999"}, "expiry"},
		{"exp in milliseconds", object{"exp": today.Add(time.Minute).UnixMilli()}, "expiry"},
		{"exp beyond the year 9999", object{"exp": 1e300}, "expiry"},
		{"exp below 0", object{"exp": -1}, "expiry"},
		{"expired 31 s ago", object{"exp": at(-31 * s)}, "expired"},
		{"expired 30 s ago", object{"exp": at(-30 * s)}, "expired"},
		{"expired 29 s ago", object{"exp": at(-29 * s)}, ""},
		{"expired 29.5 s ago", object{"exp": float64(at(-29*s)) - 0.5}, ""},
		{"expired long ago", object{"exp": 0}, "expired"},
		{"nbf in 31 s", object{"nbf": at(31 * s)}, "not yet valid"},
		{"nbf in 30 s", object{"nbf": at(30 * s)}, ""},
		{"iat in 31 s", object{"iat": at(31 * s)}, "not yet valid"},
		{"iat in 29 s", object{"iat": at(29 * s)}, ""},
		{"nbf that is a string", object{"nbf": "now"}, "expiry"},
		{"neither nbf nor iat", object{"nbf": nil, "iat": nil}, ""},

		{"no aud", object{"aud": nil}, "audience"},
		{"aud of another", object{"aud": "other"}, "audience"},
		{"aud with more behind", object{"aud": "prompt-assembly/"}, "audience"},
		{"aud of a list of one", object{"aud": []string{"prompt-assembly"}}, ""},
		{"aud of an empty list", object{"aud": []string{}}, "audience"},
		{"several aud", object{"aud": []string{"prompt-assembly", "other"}}, "audience"},
		{"twice the same aud", object{"aud": []string{"prompt-assembly", "prompt-assembly"}}, "audience"},
		{"several aud where configured", object{"iss": several.Name, "aud": []string{"other", "prompt-assembly"}}, ""},
		{"several of others", object{"iss": several.Name, "aud": []string{"other", "another"}}, "audience"},
		{"aud that holds a number", object{"iss": several.Name, "aud": []any{"prompt-assembly", 1}}, "audience"},
		{"aud that is an object", object{"aud": object{"prompt-assembly": true}}, "audience"},

		{"no iss", object{"iss": nil}, "issuer"},
		{"another iss", object{"iss": "https://c.example"}, "issuer"},
		{"iss with a slash behind", object{"iss": "https://a.example/"}, "issuer"},
		{"iss in upper case", object{"iss": "HTTPS://A.EXAMPLE"}, "issuer"},
		{"iss that is a list", object{"iss": []string{"https://a.example"}}, "issuer"},
		{"A's key in B's name", object{"iss": "https://b.example"}, "signature"},

		{"no sub", object{"sub": nil}, "subject"},
		{"sub that is a number", object{"sub": 7}, "subject"},
		{"empty sub", object{"sub": ""}, "subject"},
		{"sub of 255 bytes", object{"sub": strings.Repeat("s", 255)}, ""},
		{"sub of 256 bytes", object{"sub": strings.Repeat("s", 256)}, "subject"},
		{"sub with a line break", object{"sub": "har\nness"}, "subject"},
		{"sub with NUL", object{"sub": "harness\x00"}, "subject"},
		{"sub with a C1 control", object{"sub": "harness\u0085"}, "subject"},
		{"sub with a replacement character", object{"sub": "harness\ufffd"}, "subject"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := check(t, tokens, token(t, with(claimsAt(today), c.changed))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for name, payload := range map[string]string{
		"duplicate sub":         `{"sub":"harness","sub":"admin","iss":"https://a.example","aud":"prompt-assembly","exp":9999999999}`,
		"duplicate sub escaped": `{"sub":"harness","\u0073ub":"admin","iss":"https://a.example","aud":"prompt-assembly","exp":9999999999}`,
		"duplicate, nested":     `{"sub":"harness","iss":"https://a.example","aud":"prompt-assembly","exp":9999999999,"x":{"y":{"z":1,"z":2}}}`,
		"array":                 `["harness"]`,
		"null":                  `null`,
		"string":                `"harness"`,
		"not UTF-8":             "{\"sub\":\"harness\xff\",\"iss\":\"https://a.example\",\"aud\":\"prompt-assembly\",\"exp\":9999999999}",
		"more behind":           `{"sub":"harness","iss":"https://a.example","aud":"prompt-assembly","exp":9999999999}{}`,
		"exp of infinity":       `{"sub":"harness","iss":"https://a.example","aud":"prompt-assembly","exp":1e999}`,
	} {
		if got := check(t, tokens, signed(t, "RS256", rsaKey(), `{"alg":"RS256","kid":"k1"}`, payload)); got != "malformed" {
			t.Errorf("%s: %q", name, got)
		}
	}
	halves := `{"sub":"harness\ud800","iss":"https://a.example","aud":"prompt-assembly","exp":9999999999}`
	if got := check(t, tokens, signed(t, "RS256", rsaKey(), `{"alg":"RS256","kid":"k1"}`, halves)); got != "subject" {
		t.Errorf("half of a surrogate pair: %q", got)
	}
	upper := `{"SUB":"harness","iss":"https://a.example","aud":"prompt-assembly","exp":9999999999}`
	if got := check(t, tokens, signed(t, "RS256", rsaKey(), `{"alg":"RS256","kid":"k1"}`, upper)); got != "subject" {
		t.Errorf("SUB for sub: %q", got)
	}
}

// Of a forged payload nothing but the choice of keys may show in the answer.
func TestSignatureBeforeClaims(t *testing.T) {
	tokens := tokens(t, issuerA(t, jwk(t, rsaKey(), "k1", nil)))
	for _, changed := range []object{{"exp": nil}, {"exp": 0}, {"aud": "other"}, {"sub": nil}, {"nbf": 9999999999.0}} {
		forged := signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"k1"}`, toJSON(t, with(claimsAt(today), changed)))
		if got := check(t, tokens, forged); got != "signature" {
			t.Errorf("%v: %q", changed, got)
		}
	}
}

func TestSPIFFESubjects(t *testing.T) {
	org := identity.Issuer{
		Name: "example.org", SPIFFE: true, Audiences: []string{"prompt-assembly"},
		Keys: jwks.Location{File: written(t, keySet(t, jwk(t, p256(), "s", object{"use": "jwt-svid"}), jwk(t, p384(), "x", object{"use": "x509-svid"})))},
	}
	org.Algorithms = []string{"ES256", "ES384"}
	net := org
	net.Name, net.Keys.File = "example.net", written(t, keySet(t, jwk(t, otherRSA(), "s", object{"use": "jwt-svid"})))
	oidc := issuerA(t, jwk(t, rsaKey(), "k1", nil))
	tokens := tokens(t, org, net, oidc)
	svid := func(changed object) string {
		claims := object{"sub": "spiffe://example.org/agent", "aud": []string{"prompt-assembly"}, "exp": today.Add(time.Minute).Unix()}
		return signed(t, "ES256", p256(), `{"alg":"ES256","kid":"s","typ":"JOSE"}`, toJSON(t, with(claims, changed)))
	}
	c := accepted(t, tokens, svid(nil))
	if want := (identity.Identity{Source: identity.JWT, Issuer: "example.org", Name: "spiffe://example.org/agent"}); c.Identity != want || !c.SPIFFE {
		t.Errorf("%+v, want %+v as a SPIFFE ID", c, want)
	}
	c = accepted(t, tokens, token(t, with(claimsAt(today), object{"sub": "spiffe://example.org/agent"})))
	if want := (identity.Identity{Source: identity.JWT, Issuer: "https://a.example", Name: "spiffe://example.org/agent"}); c.Identity != want || c.SPIFFE {
		t.Errorf("%+v, want %+v and no SPIFFE ID", c, want)
	}
	for _, c := range []struct {
		name    string
		changed object
		want    string
	}{
		{"an iss that nobody has", object{"iss": "https://spire.example"}, ""},
		{"the iss of another issuer", object{"iss": "https://a.example"}, "unknown key"},
		{"the trust domain as iss", object{"iss": "example.org"}, ""},
		{"root path", object{"sub": "spiffe://example.org"}, "subject"},
		{"empty path", object{"sub": "spiffe://example.org/"}, "issuer"},
		{"another trust domain with the same path", object{"sub": "spiffe://example.net/agent"}, "algorithm"},
		{"a trust domain of nobody", object{"sub": "spiffe://evil.example/agent"}, "issuer"},
		{"a trust domain with more in front", object{"sub": "spiffe://evil.example.org/agent"}, "issuer"},
		{"upper case", object{"sub": "spiffe://EXAMPLE.org/agent"}, "issuer"},
		{"dot segments", object{"sub": "spiffe://example.org/ns/../agent"}, "issuer"},
		{"a port", object{"sub": "spiffe://example.org:443/agent"}, "issuer"},
		{"a query", object{"sub": "spiffe://example.org/agent?x"}, "issuer"},
		{"not a SPIFFE ID", object{"sub": "agent"}, "issuer"},
		{"of 2049 bytes", object{"sub": "spiffe://example.org/" + strings.Repeat("a", 2049-21)}, "subject"},
		{"of 2048 bytes", object{"sub": "spiffe://example.org/" + strings.Repeat("a", 2048-21)}, ""},
	} {
		if got := check(t, tokens, svid(c.changed)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	x509 := signed(t, "ES384", p384(), `{"alg":"ES384","kid":"x"}`, `{"sub":"spiffe://example.org/agent"}`)
	if got := check(t, tokens, x509); got != "unknown key" {
		t.Errorf("a key for certificates: %q", got)
	}
}

func TestEqualSubjectsOfTwoIssuers(t *testing.T) {
	b := issuerA(t, jwk(t, otherRSA(), "k1", nil))
	b.Name = "https://b.example"
	tokens := tokens(t, issuerA(t, jwk(t, rsaKey(), "k1", nil)), b)
	ofA := accepted(t, tokens, token(t, claimsAt(today)))
	ofB := accepted(t, tokens, signed(t, "RS256", otherRSA(), `{"alg":"RS256","kid":"k1"}`,
		toJSON(t, with(claimsAt(today), object{"iss": "https://b.example"}))))
	if ofA.Name != ofB.Name || ofA.Identity == ofB.Identity {
		t.Errorf("%+v and %+v", ofA, ofB)
	}
}
