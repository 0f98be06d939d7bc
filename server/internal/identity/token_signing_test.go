package identity_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

// The keys that tests sign with, made once.
var (
	rsaKey   = sync.OnceValue(func() crypto.Signer { return made(rsa.GenerateKey(rand.Reader, 2048)) })
	otherRSA = sync.OnceValue(func() crypto.Signer { return made(rsa.GenerateKey(rand.Reader, 2048)) })
	weakRSA  = sync.OnceValue(func() crypto.Signer { return made(rsa.GenerateKey(rand.Reader, 1024)) })
	p256     = sync.OnceValue(func() crypto.Signer { return made(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p384     = sync.OnceValue(func() crypto.Signer { return made(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	p521     = sync.OnceValue(func() crypto.Signer { return made(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)) })
	edKey    = sync.OnceValue(func() crypto.Signer {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return made(key, err)
	})
)

func made[T crypto.Signer](key T, err error) crypto.Signer {
	if err != nil {
		panic(err)
	}
	return key
}

// The date of tests that hold a clock.
var today = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// signed returns a token with this header and this payload, to the byte.
func signed(tb testing.TB, algorithm string, key crypto.Signer, header, payload string) string {
	tb.Helper()
	input := encode([]byte(header)) + "." + encode([]byte(payload))
	return input + "." + encode(signature(tb, algorithm, key, []byte(input)))
}

func signature(tb testing.TB, algorithm string, key crypto.Signer, input []byte) []byte {
	tb.Helper()
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[algorithm[2:]]
	digest := input
	if hash != 0 {
		h := hash.New()
		h.Write(input)
		digest = h.Sum(nil)
	}
	var opts crypto.SignerOpts = hash
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, digest)
		if err != nil {
			tb.Fatal(err)
		}
		size := (key.Curve.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
	case *rsa.PrivateKey:
		if algorithm[:2] == "PS" {
			opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
		}
	}
	sig, err := key.Sign(rand.Reader, digest, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return sig
}

func hs256(secret []byte, header, payload string) string {
	input := encode([]byte(header)) + "." + encode([]byte(payload))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(input))
	return input + "." + encode(mac.Sum(nil))
}

type object = map[string]any

func toJSON(tb testing.TB, value any) string {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// with returns a copy with other members; nil takes one away.
func with(o object, changed object) object {
	o = maps.Clone(o)
	maps.Copy(o, changed)
	maps.DeleteFunc(o, func(_ string, value any) bool { return value == nil })
	return o
}

// claimsAt are claims that hold at a time.
func claimsAt(now time.Time) object {
	return object{
		"iss": "https://a.example", "sub": "harness", "aud": "prompt-assembly",
		"exp": now.Add(10 * time.Minute).Unix(), "iat": now.Unix(), "nbf": now.Unix(),
	}
}

// token returns a token with the claims, by the key k1 of RS256.
func token(tb testing.TB, claims object) string {
	tb.Helper()
	return signed(tb, "RS256", rsaKey(), `{"alg":"RS256","kid":"k1","typ":"JWT"}`, toJSON(tb, claims))
}

// jwk returns a public key of a key set.
func jwk(tb testing.TB, key crypto.Signer, id string, changed object) object {
	tb.Helper()
	data, err := jose.JSONWebKey{Key: key.Public(), KeyID: id}.MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		tb.Fatal(err)
	}
	return with(o, changed)
}

func keySet(tb testing.TB, keys ...object) string {
	tb.Helper()
	if keys == nil {
		keys = []object{}
	}
	return toJSON(tb, object{"keys": keys})
}

func written(tb testing.TB, content string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	write(tb, path, content)
	return path
}

func write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// issuerA is an issuer with keys from a file.
func issuerA(tb testing.TB, keys ...object) identity.Issuer {
	tb.Helper()
	return identity.Issuer{Name: "https://a.example", Keys: jwks.Location{File: written(tb, keySet(tb, keys...))}, Audiences: []string{"prompt-assembly"}}
}

// tokens returns Tokens at a fixed time.
func tokens(tb testing.TB, issuers ...identity.Issuer) *identity.Tokens {
	tb.Helper()
	return tokensAt(tb, func() time.Time { return today }, issuers...)
}

func tokensAt(tb testing.TB, now func() time.Time, issuers ...identity.Issuer) *identity.Tokens {
	tb.Helper()
	t := identity.NewTokens(identity.TokensConfig{Log: slog.New(slog.DiscardHandler), Now: now})
	tb.Cleanup(t.Close)
	if err := t.Configure(context.Background(), issuers); err != nil {
		tb.Fatal(err)
	}
	return t
}

// accepted verifies a token that must hold, without waiting.
func accepted(tb testing.TB, t *identity.Tokens, token string) *identity.Caller {
	tb.Helper()
	c, err := t.Verify(context.Background(), token, func() { tb.Error("it waited") })
	if err != nil {
		tb.Fatalf("refused: %v", err)
	}
	return c
}

// check returns what is wrong with a token; empty: nothing.
func check(tb testing.TB, t *identity.Tokens, token string) string {
	tb.Helper()
	c, err := t.Verify(context.Background(), token, nil)
	if err == nil {
		return ""
	}
	if c != nil {
		tb.Error("a caller beside an error")
	}
	invalid, ok := errors.AsType[*identity.InvalidError](err)
	if !ok || invalid.Source != identity.JWT {
		tb.Fatalf("the error is %#v", err)
	}
	return invalid.Check
}

func quoted(s string) string { return fmt.Sprintf("%.60q", s) }
