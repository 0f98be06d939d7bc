package load

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/grpc/credentials"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/dev"
)

// BenchmarkIdentity compares the processor time of a call with that of a server that believes everybody,
// in alternating rounds: share is the median of the part of a call that goes into finding out who calls
// and what they may assert. A cold token is one that the server does not remember.
func BenchmarkIdentity(b *testing.B) {
	const remembered = 4096
	for _, by := range []struct {
		name   string
		tokens int // 0: a certificate
	}{{"mTLS", 0}, {"JWT/warm", 1}, {"JWT/cold", 2 * remembered}} {
		b.Run(by.name, func(b *testing.B) {
			var folder string
			var transport credentials.TransportCredentials
			var tokens []string
			if by.tokens == 0 {
				folder, transport = clientCredentials(b)
			} else {
				folder, tokens = makeTokens(b, by.tokens)
			}
			servers := []*process{start(b, whole, folder), start(b, open, folder)}
			var generators []*generator
			for _, s := range servers {
				g := dial(b, s, spread, transport, requestOf(100))
				g.tokens = tokens
				generators = append(generators, g)
			}
			for b.Loop() {
				costs, ratios := compare(b, servers, generators, concurrent)
				b.ReportMetric(1-median(ratios), "share")
				b.ReportMetric(median(costs[0]), "µs/call")
				b.ReportMetric(median(costs[1]), "µs/open-call")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// tokenPolicy is a policy file for tokens of an issuer, whose keys are in a file.
const tokenPolicy = `version: 1
issuers:
  - issuer: https://issuer.test
    keys: {file: %FILE%}
    audiences: [prompt-assembly]
callers:
  - name: harness
    identities: [{source: jwt, issuer: https://issuer.test, subject: harness}]
    scopes: [{prefix: tenant-7, separator: /}]
`

// makeTokens makes an issuer and n tokens of one subject, and returns a folder for accessIn.
func makeTokens(b *testing.B, n int) (folder string, tokens []string) {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		token, err := jwt.Signed(signer).Claims(jwt.Claims{
			Issuer: "https://issuer.test", Subject: "harness", Audience: jwt.Audience{"prompt-assembly"},
			Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour)), ID: strconv.Itoa(i),
		}).Serialize()
		if err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	if err != nil {
		b.Fatal(err)
	}
	folder = b.TempDir()
	keysFile := filepath.Join(folder, "keys.json")
	policy := strings.ReplaceAll(tokenPolicy, "%FILE%", keysFile)
	for path, content := range map[string][]byte{keysFile: keys, dev.At(folder).Policy: []byte(policy)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return folder, tokens
}

// accessIn returns what a folder says of who may call: by mTLS, or by tokens in plaintext.
func accessIn(folder string) server.AccessConfig {
	files := dev.At(folder)
	if _, err := os.Stat(files.CA); err != nil {
		return server.AccessConfig{Policy: files.Policy}
	}
	return files.Access()
}
