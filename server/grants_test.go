package server_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/grant"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

const granter = "https://harness.example"

// newGranter returns a key of the issuer of that name, and its public key set.
func newGranter(t testing.TB, issuer string, algorithm jose.SignatureAlgorithm) (grant.SigningKey, jose.JSONWebKeySet) {
	t.Helper()
	var signer crypto.Signer
	_, signer, err := ed25519.GenerateKey(rand.Reader)
	if algorithm == jose.ES256 {
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return grant.SigningKey{Issuer: issuer, ID: "1", Signer: signer},
		jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: signer.Public(), KeyID: "1", Algorithm: string(algorithm)}}}
}

// keysIn writes a key set into a file, and returns its path.
func keysIn(t testing.TB, set any) string {
	t.Helper()
	data, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "keys.json")
	testca.Write(t, path, data)
	return path
}

// grantPolicy is the policy of tests of grants: a harness, which calls or signs, and a relay, which may do
// nothing by itself.
func grantPolicy(keys string) string {
	return fmt.Sprintf(`version: 1
grants:
  - {issuer: %q, keys: {file: %q}, audiences: [prompt-assembly, other-name]}
callers:
  - name: harness
    identities:
      - {source: mtls, spiffe: spiffe://example.org/harness}
      - {source: grant, issuer: %[1]q}
    authorities: [current_turn]
    required: [base_instructions]
    scopes: [{exact: u}, {exact: v}]
    bounds: {top_k: 7}
  - name: relay
    identities: [{source: mtls, spiffe: spiffe://example.org/relay}]
    may_relay: [{issuer: %[1]q, scopes: [{exact: u}, {exact: w}]}]
`, granter, keys)
}

// granted returns a grant of a request for a minute from now, as edit changes it.
func granted(request proto.Message, edit func(*pb.Grant)) *pb.Grant {
	g := &pb.Grant{
		Audience: "prompt-assembly", QueryId: "q",
		IssueTime: timestamppb.Now(), ExpireTime: timestamppb.New(time.Now().Add(time.Minute)),
	}
	switch r := request.(type) {
	case *pb.SelectMemoryRequest:
		g.Request = &pb.Grant_SelectMemory{SelectMemory: r}
	case *pb.PlanPromptRequest:
		g.Request = &pb.Grant_PlanPrompt{PlanPrompt: r}
	}
	if edit != nil {
		edit(g)
	}
	return g
}

func signGrant(t testing.TB, key grant.SigningKey, g *pb.Grant) []byte {
	t.Helper()
	token, err := grant.Sign(key, g)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// carrying returns the request of the other's type that carries a grant for the query q.
func carrying(like proto.Message, token []byte) proto.Message {
	if _, plan := like.(*pb.PlanPromptRequest); plan {
		return &pb.PlanPromptRequest{QueryId: "q", Grant: token}
	}
	return &pb.SelectMemoryRequest{QueryId: "q", Grant: token}
}

// claiming returns a request for memories that only a harness may make.
func claiming() *pb.SelectMemoryRequest {
	first, second := candidate("a", "Use Go."), candidate("b", "Use Rust.")
	first.Authority, first.ConflictKey, second.ConflictKey = turn, "language", "language"
	return &pb.SelectMemoryRequest{
		UserScope: "u", Candidates: []*pb.MemoryContextCandidate{first, second},
		Policy: &pb.MemorySelectionPolicy{TopK: new(uint32(7))},
	}
}

// prompted returns a request for a prompt that only a harness may make.
func prompted() *pb.PlanPromptRequest {
	return &pb.PlanPromptRequest{
		Segments: []*pb.PromptSegment{sent(baseKind, "", "Obey.", nil), sent(0, "note", "---\nx", nil)},
		Memory:   claiming(),
	}
}

// A relay without any authority gets the bytes that the issuer itself would get.
func TestGrantIsAnsweredAsItsIssuer(t *testing.T) {
	for _, algorithm := range []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256} {
		key, set := newGranter(t, granter, algorithm)
		g := serveAccess(t, newCA(t), grantPolicy(keysIn(t, set)), server.Config{})
		harness, relay := g.as(t, exampleID("/harness")), g.as(t, exampleID("/relay"))
		for method, request := range map[string]proto.Message{"SelectMemory": claiming(), "PlanPrompt": prompted()} {
			want, err := callBytes(t, harness, method, marshal(t, request))
			if err != nil {
				t.Fatal(err)
			}
			for name, edit := range map[string]func(*pb.Grant){
				"as it is":             nil,
				"by the other name":    func(g *pb.Grant) { g.Audience = "other-name" },
				"for five minutes":     func(g *pb.Grant) { g.ExpireTime = timestamppb.New(g.GetIssueTime().AsTime().Add(5 * time.Minute)) },
				"by a clock ahead":     func(g *pb.Grant) { move(g, 29*time.Second) },
				"by a clock behind":    func(g *pb.Grant) { move(g, -89*time.Second) },
				"with its own query":   func(g *pb.Grant) { setInnerQuery(g, "q") },
				"with another's query": func(g *pb.Grant) { setMemoryQuery(g, "other") },
			} {
				token := signGrant(t, key, granted(proto.Clone(request), edit))
				got, err := callBytes(t, relay, method, marshal(t, carrying(request, token)))
				if err != nil || !bytes.Equal(want, got) {
					t.Errorf("%s, %s, %s: %v, or another answer than the issuer's", algorithm, method, name, err)
				}
			}
			scope := "user_scope"
			if method == "PlanPrompt" {
				scope = "memory.user_scope"
			}
			checkRefused(t, method+" without the grant", invoke(t.Context(), t, relay, request, nil), refused{
				codes.PermissionDenied, "SCOPE_NOT_PERMITTED",
				map[string]string{"path": scope, "identity": exampleID("/relay"), "scope": "u"},
			})
		}
	}
}

// move makes a grant of another time.
func move(g *pb.Grant, by time.Duration) {
	g.IssueTime = timestamppb.New(g.GetIssueTime().AsTime().Add(by))
	g.ExpireTime = timestamppb.New(g.GetExpireTime().AsTime().Add(by))
}

func setInnerQuery(g *pb.Grant, id string) {
	if r := g.GetSelectMemory(); r != nil {
		r.QueryId = id
	}
	if r := g.GetPlanPrompt(); r != nil {
		r.QueryId = id
	}
}

// setMemoryQuery names the query of a prompt's memory, which is not the prompt's.
func setMemoryQuery(g *pb.Grant, id string) {
	if r := g.GetPlanPrompt().GetMemory(); r != nil {
		r.QueryId = id
	}
}

// What counts is the issuer's policy; and of all that is wrong the first in the contract's order answers.
func TestGrantOrder(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	g := serveAccess(t, newCA(t), grantPolicy(keysIn(t, set)), server.Config{})
	relay := g.as(t, exampleID("/relay"))
	r := prompted()
	m := r.GetMemory()
	m.UserScope, m.Candidates[0].Authority, m.Candidates[1].SourceRank = "x", workspace, 0
	m.Policy.TopK, r.Tokenizer = new(uint32(8)), "other"
	r.Segments[1].Required = new(true)
	denied := func(reason string, pairs ...string) refused {
		metadata := map[string]string{"identity": granter, "scope": m.GetUserScope()}
		for i := 0; i < len(pairs); i += 2 {
			metadata[pairs[i]] = pairs[i+1]
		}
		return refused{codes.PermissionDenied, reason, metadata}
	}
	check := func(check string) refused {
		return refused{codes.PermissionDenied, "GRANT_INVALID", map[string]string{"path": "grant", "check": check}}
	}
	query := "other"
	for _, step := range []struct {
		want func() refused
		mend func()
	}{
		{func() refused { return check("query") }, func() { query = "q" }},
		{
			func() refused {
				return refused{codes.InvalidArgument, "INVALID_REQUEST", map[string]string{"violation_count": "1"}}
			},
			func() { m.Candidates[1].SourceRank = 1 },
		},
		{
			func() refused {
				return denied("GRANT_INVALID", "path", "grant", "check", "relay", "identity", exampleID("/relay"))
			},
			func() { m.UserScope = "v" },
		},
		{
			func() refused {
				return denied("GRANT_INVALID", "path", "grant", "check", "relay", "identity", exampleID("/relay"))
			},
			func() { m.UserScope = "w" },
		},
		{
			func() refused { return denied("SCOPE_NOT_PERMITTED", "path", "grant.memory.user_scope") },
			func() { m.UserScope = "u" },
		},
		{
			func() refused {
				return denied("AUTHORITY_NOT_PERMITTED", "path", "grant.memory.candidates[0].authority", "authority", "AUTHORITY_WORKSPACE_OVERRIDE")
			},
			func() { m.Candidates[0].Authority = turn },
		},
		{
			func() refused {
				return denied("REQUIRED_NOT_PERMITTED", "path", "grant.segments[1]", "segment", "note", "kind", "SEGMENT_KIND_CUSTOM")
			},
			func() { r.Segments[1].Required = nil },
		},
		{
			func() refused {
				return denied("POLICY_NOT_PERMITTED", "path", "grant.memory.policy.top_k", "field", "top_k", "bound", "7")
			},
			func() { m.Policy.TopK = nil },
		},
		{func() refused {
			return refused{codes.InvalidArgument, "UNKNOWN_TOKENIZER", map[string]string{"known": tokenizerNames()}}
		}, func() { r.Tokenizer = "" }},
		{func() refused { return refused{} }, func() {}},
	} {
		token := signGrant(t, key, granted(r, nil))
		request := &pb.PlanPromptRequest{QueryId: query, Grant: token}
		err := invoke(t.Context(), t, relay, request, nil)
		checkRefused(t, "a grant", err, step.want())
		if _, violations := refusalOf(err); len(violations) > 0 && violations[0].GetField() != "grant.memory.candidates[1].source_rank" {
			t.Errorf("%v", violations)
		}
		for name, wrong := range map[string]*pb.PlanPromptRequest{
			"with a grant as memory": {QueryId: query, Memory: &pb.SelectMemoryRequest{Grant: token}},
			"beside a budget":        {QueryId: query, Grant: token, MaxChars: new(pb.Budget)},
		} {
			checkRefused(t, name, invoke(t.Context(), t, relay, wrong, nil), refused{
				codes.InvalidArgument, "INVALID_REQUEST", map[string]string{"violation_count": "1"},
			})
		}
		step.mend()
	}
}

// A grant stands alone but for the query id.
func TestNothingStandsBesideAGrant(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	g := serveAccess(t, newCA(t), grantPolicy(keysIn(t, set)), server.Config{})
	relay := g.as(t, exampleID("/relay"))
	token := signGrant(t, key, granted(claiming(), nil))
	for name, edit := range map[string]func(*pb.SelectMemoryRequest){
		"a scope":      func(r *pb.SelectMemoryRequest) { r.UserScope = "u" },
		"a recall":     func(r *pb.SelectMemoryRequest) { r.Recall = new(pb.RecallResult) },
		"a candidate":  func(r *pb.SelectMemoryRequest) { r.Candidates = claiming().GetCandidates() },
		"a policy":     func(r *pb.SelectMemoryRequest) { r.Policy = new(pb.MemorySelectionPolicy) },
		"a tokenizer":  func(r *pb.SelectMemoryRequest) { r.Tokenizer = "estimate" },
		"another such": func(r *pb.SelectMemoryRequest) { r.Tokenizer = "other" },
	} {
		r := &pb.SelectMemoryRequest{QueryId: "q", Grant: token}
		edit(r)
		err := invoke(t.Context(), t, relay, r, nil)
		checkRefused(t, name, err, refused{codes.InvalidArgument, "INVALID_REQUEST", map[string]string{"violation_count": "1"}})
		if _, violations := refusalOf(err); len(violations) != 1 || violations[0].GetField() != "grant" {
			t.Errorf("%s: %v", name, violations)
		}
	}
}
