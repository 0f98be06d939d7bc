package client_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
)

func TestSignGrant(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := grant.SigningKey{Issuer: "i", ID: "1", Signer: private}
	req := client.SelectRequest("u", []client.Memory{{ID: "m", Text: "x", Score: 1, SourceID: "s", SourceType: "t"}})
	if _, err := client.SignGrant(key, "a", 0, req); err == nil || !strings.HasPrefix(err.Error(), "client: query_id") {
		t.Errorf("without a query: %v", err)
	}
	req.QueryId = "q"
	before := time.Now()
	carrying, err := client.SignGrant(key, "a", 0, req)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&pb.SelectMemoryRequest{QueryId: "q", Grant: carrying.GetGrant()}, carrying) {
		t.Errorf("more than the grant is sent: %v", carrying)
	}
	contents := contentsOf(t, carrying.GetGrant(), public)
	got := new(pb.SelectMemoryRequest)
	if err := proto.Unmarshal(contents.Request, got); err != nil || !proto.Equal(got, req) || contents.Plan {
		t.Errorf("%v, %v is granted, want %v", err, got, req)
	}
	if life := contents.Expires.Sub(contents.Issued); life != time.Minute || contents.Issued.Before(before.Add(-time.Second)) {
		t.Errorf("from %v for %v", contents.Issued, life)
	}
	if err := contents.Holds([]string{"a"}, time.Now(), "q"); err != nil {
		t.Error(err)
	}

	plan, err := client.SignGrant(key, "a", grant.MaxLife, &pb.PlanPromptRequest{QueryId: "p", Memory: req})
	if err != nil {
		t.Fatal(err)
	}
	if contents := contentsOf(t, plan.GetGrant(), public); !contents.Plan || plan.GetQueryId() != "p" || plan.GetMemory() != nil {
		t.Errorf("%+v by %v", contents, plan)
	}
	if _, err := client.SignGrant(key, "a", grant.MaxLife+1, req); err == nil {
		t.Error("a grant of more than five minutes")
	}
}

func contentsOf(t *testing.T, token []byte, public ed25519.PublicKey) *grant.Contents {
	t.Helper()
	signed, err := grant.Parse(token)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := signed.Verify(public)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := grant.Open(payload)
	if err != nil {
		t.Fatal(err)
	}
	return contents
}
