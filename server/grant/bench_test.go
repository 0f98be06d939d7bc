package grant_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

// BenchmarkCheck is what a service does with a grant of a request for 100 memories of 550 bytes, but for
// decoding the request.
func BenchmarkCheck(b *testing.B) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	token, err := grant.Sign(grant.SigningKey{Issuer: issuer, ID: "1", Signer: key}, granted(func(g *pb.Grant) {
		r := g.GetSelectMemory()
		for i := range 100 {
			r.Candidates = append(r.Candidates, &pb.MemoryContextCandidate{
				MemoryId: fmt.Sprintf("mem-%06d", i), Text: strings.Repeat("The user prefers short reports. ", 13),
				UserScope: "tenant-7/user-42", Score: new(0.5), SourceRank: uint32(i + 1),
				Provenance: &pb.Provenance{
					SourceId: "conversation-00042", SourceType: "conversation", Title: "Weekly planning notes",
					CapturedAt: &timestamppb.Timestamp{Seconds: 1_700_000_000},
				},
			})
		}
	}))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := grant.Parse(token); err != nil {
				b.Fatal(err)
			}
		}
	})
	signed, err := grant.Parse(token)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := signed.Verify(key.Public()); err != nil {
				b.Fatal(err)
			}
		}
	})
	payload, err := signed.Verify(key.Public())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			contents, err := grant.Open(payload)
			if err != nil {
				b.Fatal(err)
			}
			if err := contents.Holds([]string{audience}, noon.Add(time.Second), "q"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
