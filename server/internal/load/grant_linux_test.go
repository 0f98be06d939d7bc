package load

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/dev"
	"github.com/promptassembly/promptassembly/server/grant"
)

// BenchmarkGrant compares the processor time of a call that carries a signed grant with that of the same
// request by itself, by the same caller of the same server, in alternating rounds: share is the median of
// the part of a call that goes into the grant.
func BenchmarkGrant(b *testing.B) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	for _, by := range []struct {
		name   string
		signer crypto.Signer
	}{{"EdDSA", ed}, {"ES256", p256}} {
		b.Run(by.name, func(b *testing.B) {
			folder, tokens := makeTokens(b, 1)
			trustGrants(b, folder, by.signer.Public())
			s := start(b, whole, folder)
			servers := []*process{s, s}
			for b.Loop() {
				// For each of these a grant holds, which rounds of more than half a minute would outlast.
				request := requestOf(100)
				generators := []*generator{
					dial(b, s, spread, nil, grantedBy(b, by.signer, request)),
					dial(b, s, spread, nil, request),
				}
				for _, g := range generators {
					g.tokens = tokens
				}
				costs, ratios := compare(b, servers, generators, concurrent)
				b.ReportMetric(1-median(ratios), "share")
				b.ReportMetric(median(costs[0]), "µs/call")
				b.ReportMetric(median(costs[1]), "µs/plain-call")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// trustGrants adds an issuer of grants with that key to what a folder for accessIn says.
func trustGrants(b *testing.B, folder string, public crypto.PublicKey) {
	b.Helper()
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "1"}}})
	if err != nil {
		b.Fatal(err)
	}
	keysFile := filepath.Join(folder, "granters.json")
	if err := os.WriteFile(keysFile, keys, 0o600); err != nil {
		b.Fatal(err)
	}
	policy, err := os.OpenFile(dev.At(folder).Policy, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	_, err = fmt.Fprintf(policy, `    may_relay: [{issuer: https://granter.test, scopes: [{any: true}]}]
  - name: granter
    identities: [{source: grant, issuer: https://granter.test}]
    scopes: [{prefix: tenant-7, separator: /}]
grants:
  - {issuer: https://granter.test, keys: {file: %q}, audiences: [prompt-assembly]}
`, keysFile)
	if err != nil {
		b.Fatal(err)
	}
	if err := policy.Close(); err != nil {
		b.Fatal(err)
	}
}

// grantedBy returns a request, encoded, that carries a grant of another one for five minutes.
func grantedBy(b *testing.B, signer crypto.Signer, request []byte) []byte {
	b.Helper()
	granted := new(pb.SelectMemoryRequest)
	if err := proto.Unmarshal(request, granted); err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	token, err := grant.Sign(grant.SigningKey{Issuer: "https://granter.test", ID: "1", Signer: signer}, &pb.Grant{
		Audience: "prompt-assembly", QueryId: granted.GetQueryId(),
		IssueTime: timestamppb.New(now), ExpireTime: timestamppb.New(now.Add(grant.MaxLife)),
		Request: &pb.Grant_SelectMemory{SelectMemory: granted},
	})
	if err != nil {
		b.Fatal(err)
	}
	carrying, err := proto.Marshal(&pb.SelectMemoryRequest{QueryId: granted.GetQueryId(), Grant: token})
	if err != nil {
		b.Fatal(err)
	}
	return carrying
}
