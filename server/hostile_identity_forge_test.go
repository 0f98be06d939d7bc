package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// hostileIssuer signs tokens, and whatever else it is told to.
type hostileIssuer struct {
	t      testing.TB
	claims map[string]any
	ec     *ecdsa.PrivateKey
	rsa    *rsa.PrivateKey // nil: none
}

// newHostileIssuer returns an issuer of tokens with the claims; those for time and audience are added.
func newHostileIssuer(t testing.TB, claims map[string]any) *hostileIssuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &hostileIssuer{t: t, claims: claims, ec: key}
}

// keys returns the key set of the issuer, whose keys have the IDs ec and rsa.
func (i *hostileIssuer) keys() []byte {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.ec.Public(), KeyID: "ec", Use: "sig"}}}
	if i.rsa != nil {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: i.rsa.Public(), KeyID: "rsa", Use: "sig"})
	}
	encoded, err := json.Marshal(set)
	if err != nil {
		i.t.Fatal(err)
	}
	return encoded
}

// write writes the key set to a file of a folder, and returns its path.
func (i *hostileIssuer) write(dir, name string) {
	testca.Write(i.t, filepath.Join(dir, name), i.keys())
}

// hostileToken is a token before it is signed.
type hostileToken struct {
	header, claims map[string]any
	sign           func(signed []byte) []byte
}

// token returns a good token, or what edit makes of it.
func (i *hostileIssuer) token(edit func(f *hostileToken)) string {
	f := &hostileToken{
		header: map[string]any{"alg": "ES256", "kid": "ec", "typ": "JWT"},
		claims: map[string]any{"aud": "prompt-assembly", "exp": time.Now().Add(time.Hour).Unix()},
		sign:   i.signES256,
	}
	maps.Copy(f.claims, i.claims)
	if edit != nil {
		edit(f)
	}
	part := func(m map[string]any) string {
		encoded, err := json.Marshal(m)
		if err != nil {
			i.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(encoded)
	}
	signed := part(f.header) + "." + part(f.claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(f.sign([]byte(signed)))
}

func (i *hostileIssuer) signES256(signed []byte) []byte {
	sum := sha256.Sum256(signed)
	r, s, err := ecdsa.Sign(rand.Reader, i.ec, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	signature := make([]byte, 64)
	for at, n := range map[int]*big.Int{0: r, 32: s} {
		n.FillBytes(signature[at : at+32])
	}
	return signature
}

func (i *hostileIssuer) signRS256(signed []byte) []byte {
	sum := sha256.Sum256(signed)
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.rsa, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return signature
}

// hostileHS256 returns a signature by a secret.
func hostileHS256(secret []byte) func([]byte) []byte {
	return func(signed []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(signed)
		return mac.Sum(nil)
	}
}

// hostileBearers returns an authorization header for each token.
func hostileBearers(tokens ...string) (headers []string) {
	for _, token := range tokens {
		headers = append(headers, "authorization", "Bearer "+token)
	}
	return headers
}

// hostileJWE looks like an encrypted token.
func hostileJWE(header string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return strings.Join([]string{encode([]byte(header)), encode([]byte("key")), encode([]byte("iv")), encode([]byte("text")), encode([]byte("tag"))}, ".")
}
