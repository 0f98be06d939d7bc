package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// issuer signs tokens.
type issuer struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	name string // iss
	keys []byte // a JSON Web Key Set
}

func newIssuer(t testing.TB, name string) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t: t, key: key, name: name, keys: keys}
}

// file returns the path of a file with the keys.
func (i *issuer) file() string {
	i.t.Helper()
	path := filepath.Join(i.t.TempDir(), "keys.json")
	testca.Write(i.t, path, i.keys)
	return path
}

// url returns where the keys are served.
func (i *issuer) url() string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(i.keys) }))
	i.t.Cleanup(s.Close)
	return s.URL + "/keys"
}

// token returns a token of a subject for an hour, with more claims, or others; nil: without.
func (i *issuer) token(subject string, more map[string]any) string {
	i.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "1"},
	}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	claims := map[string]any{
		"iss": i.name, "sub": subject, "aud": "prompt-assembly", "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}
