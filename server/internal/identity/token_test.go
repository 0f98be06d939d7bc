package identity_test

import (
	"crypto"
	"maps"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

func TestAlgorithms(t *testing.T) {
	issuer := issuerA(t, everyKind(t)...)
	issuer.Algorithms = identity.Algorithms
	tokens := tokens(t, issuer)
	keys := map[string]struct {
		id  string
		key crypto.Signer
	}{
		"RS256": {"k1", rsaKey()}, "RS384": {"k1", rsaKey()}, "RS512": {"rs512", otherRSA()},
		"PS256": {"k1", rsaKey()}, "PS384": {"k1", rsaKey()}, "PS512": {"k1", rsaKey()},
		"ES256": {"p256", p256()}, "ES384": {"p384", p384()}, "ES512": {"p521", p521()},
		"EdDSA": {"ed", edKey()},
	}
	for _, algorithm := range identity.Algorithms {
		k := keys[algorithm]
		valid := signed(t, algorithm, k.key, `{"alg":"`+algorithm+`","kid":"`+k.id+`"}`, toJSON(t, claimsAt(today)))
		want := identity.Identity{Source: identity.JWT, Issuer: "https://a.example", Name: "harness"}
		for range 2 { // verified, then remembered
			if c := accepted(t, tokens, valid); c.Identity != want || c.SPIFFE || c.Claims != nil {
				t.Errorf("%s: %+v", algorithm, c)
			}
		}
		// The same signature under each other algorithm.
		for _, other := range identity.Algorithms {
			if other == algorithm {
				continue
			}
			parts := strings.Split(valid, ".")
			parts[0] = encode([]byte(`{"alg":"` + other + `","kid":"` + k.id + `"}`))
			if got := check(t, tokens, strings.Join(parts, ".")); got != "signature" && got != "algorithm" {
				t.Errorf("%s as %s: %q", algorithm, other, got)
			}
		}
	}
}

func TestClaimsKept(t *testing.T) {
	issuer := issuerA(t, jwk(t, rsaKey(), "k1", nil))
	issuer.Claims = []string{
		"/tenant", "/kubernetes.io/namespace", "/https:~1~1a.example~1org", "/a~01", "/groups/1", "/absent", "/tenant/x",
		"/number", "/empty", "/long", "/longest", "/control", "/list", "/object", "/groups/01", "/groups/2", "/groups/-", "/",
	}
	tokens := tokens(t, issuer)
	c := accepted(t, tokens, token(t, with(claimsAt(today), object{
		"tenant":                "acme",
		"kubernetes.io":         object{"namespace": "prod"},
		"https://a.example/org": "o",
		"a~1":                   "tilde",
		"groups":                []string{"first", "second"},
		"number":                7,
		"empty":                 "",
		"long":                  strings.Repeat("l", 257),
		"longest":               strings.Repeat("l", 256),
		"control":               "a\tb",
		"list":                  []string{"x"},
		"object":                object{"x": "y"},
		"unlisted":              "secret",
		"":                      "under the empty name",
	})))
	want := map[string]string{
		"/tenant": "acme", "/kubernetes.io/namespace": "prod", "/https:~1~1a.example~1org": "o", "/a~01": "tilde",
		"/groups/1": "second", "/longest": strings.Repeat("l", 256), "/": "under the empty name",
	}
	if !maps.Equal(c.Claims, want) {
		t.Errorf("%q, want %q", c.Claims, want)
	}
}

func TestKeyWithoutID(t *testing.T) {
	payload := toJSON(t, claimsAt(today))
	without := signed(t, "RS256", rsaKey(), `{"alg":"RS256"}`, payload)
	for _, c := range []struct {
		name string
		keys []object
		want string
	}{
		{"one key with an ID", []object{jwk(t, rsaKey(), "k1", nil)}, ""},
		{"one key without", []object{jwk(t, rsaKey(), "", nil)}, ""},
		{"one that can be used", []object{jwk(t, rsaKey(), "", nil), jwk(t, weakRSA(), "", nil), {"kty": "future"}}, ""},
		{"two keys", []object{jwk(t, rsaKey(), "k1", nil), jwk(t, p256(), "p256", nil)}, "key id"},
		{"a key of another kind", []object{jwk(t, p256(), "", nil)}, "algorithm"},
	} {
		if got := check(t, tokens(t, issuerA(t, c.keys...)), without); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := check(t, tokens(t, issuerA(t, jwk(t, rsaKey(), "", nil))), token(t, claimsAt(today))); got != "unknown key" {
		t.Errorf("an ID where the only key has none: %q", got)
	}
}

// Two keys of one ID are told apart by what algorithm they are for, and by nothing else.
func TestKeysOfOneID(t *testing.T) {
	payload := toJSON(t, claimsAt(today))
	byRSA := signed(t, "RS256", rsaKey(), `{"alg":"RS256","kid":"k"}`, payload)
	byP256 := signed(t, "ES256", p256(), `{"alg":"ES256","kid":"k"}`, payload)
	kinds := tokens(t, issuerA(t, jwk(t, rsaKey(), "k", nil), jwk(t, p256(), "k", nil)))
	accepted(t, kinds, byRSA)
	accepted(t, kinds, byP256)
	algorithms := tokens(t, issuerA(t, jwk(t, rsaKey(), "k", object{"alg": "RS256"}), jwk(t, otherRSA(), "k", object{"alg": "PS256"})))
	accepted(t, algorithms, byRSA)
	same := tokens(t, issuerA(t, jwk(t, rsaKey(), "k", nil), jwk(t, otherRSA(), "k", object{"alg": "RS256"})))
	if got := check(t, same, byRSA); got != "ambiguous key" {
		t.Errorf("two RSA keys: %q", got)
	}
}
