package identity_test

import (
	"context"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Whatever is accepted was signed, byte for byte. Of ECDSA's signatures there are two for what was
// signed, so there it is the header and the payload.
func FuzzVerify(f *testing.F) {
	issuer := issuerA(f, everyKind(f)...)
	issuer.Algorithms = identity.Algorithms
	issuer.Claims = []string{"/tenant"}
	domain := issuer
	domain.Name, domain.SPIFFE = "example.org", true
	tokens := tokens(f, issuer, domain)
	claims := with(claimsAt(today), object{"tenant": "acme"})
	payload := toJSON(f, claims)
	svid := toJSON(f, with(claims, object{"iss": nil, "sub": "spiffe://example.org/agent"}))
	valid := []string{
		token(f, claims),
		signed(f, "PS384", rsaKey(), `{"alg":"PS384","kid":"k1"}`, payload),
		signed(f, "EdDSA", edKey(), `{"alg":"EdDSA","kid":"ed"}`, payload),
		signed(f, "ES256", p256(), `{"alg":"ES256","kid":"p256"}`, svid),
		signed(f, "ES512", p521(), `{"alg":"ES512","kid":"p521"}`, svid),
	}
	whole, input := map[string]bool{}, map[string]bool{}
	for n, v := range valid {
		accepted(f, tokens, v)
		if n < 3 {
			whole[v] = true
		} else {
			input[v[:strings.LastIndexByte(v, '.')]] = true
		}
		parts := strings.Split(v, ".")
		f.Add(v)
		f.Add(parts[0] + "." + parts[1] + ".")
		f.Add(encode([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".")
		f.Add(encode([]byte(`{"alg":"HS256","kid":"oct"}`)) + "." + parts[1] + "." + parts[2])
		f.Add(v + "=")
		f.Add(v + "\n")
	}
	f.Fuzz(func(t *testing.T, token string) {
		c, err := tokens.Verify(context.Background(), token, nil)
		if err != nil {
			return
		}
		if !whole[token] && !input[token[:strings.LastIndexByte(token, '.')]] {
			t.Errorf("accepted as %+v: %q", c, token)
		}
	})
}
