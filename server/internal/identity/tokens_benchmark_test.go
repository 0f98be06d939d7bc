package identity_test

import (
	"context"
	"crypto"
	"testing"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Cold is a token that was not seen before; warm is one that is remembered.
func BenchmarkVerify(b *testing.B) {
	issuer := issuerA(b, everyKind(b)...)
	issuer.Algorithms = identity.Algorithms
	payload := toJSON(b, claimsAt(today))
	for _, c := range []struct {
		algorithm, id string
		key           crypto.Signer
	}{
		{"RS256", "k1", rsaKey()},
		{"PS256", "k1", rsaKey()},
		{"ES256", "p256", p256()},
		{"ES384", "p384", p384()},
		{"ES512", "p521", p521()},
		{"EdDSA", "ed", edKey()},
	} {
		valid := signed(b, c.algorithm, c.key, `{"alg":"`+c.algorithm+`","kid":"`+c.id+`"}`, payload)
		tokens := tokens(b, issuer)
		verify := func(b *testing.B) {
			b.Helper()
			if _, err := tokens.Verify(context.Background(), valid, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("cold/"+c.algorithm, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tokens.Forget()
				verify(b)
			}
		})
		if c.algorithm == "RS256" {
			b.Run("warm", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					verify(b)
				}
			})
		}
	}
}
