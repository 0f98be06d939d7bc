package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/codes"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

var refusedKey = refused{codes.PermissionDenied, "GRANT_INVALID", map[string]string{"path": "grant", "check": "key"}}

// A key that leaves the file verifies nothing more; a file that is broken leaves what was in force.
func TestGrantKeysInAFile(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	next, nextSet := newGranter(t, granter, jose.ES256)
	next.ID, nextSet.Keys[0].KeyID = "2", "2"
	file := keysIn(t, set)
	g := serveAccess(t, newCA(t), grantPolicy(file), server.Config{})
	relay := g.as(t, exampleID("/relay"))
	carry := func(with []byte) error { return invoke(t.Context(), t, relay, carrying(forMemory, with), nil) }
	first, second := signGrant(t, key, granted(claiming(), nil)), signGrant(t, next, granted(claiming(), nil))
	checkRefused(t, "the first key", carry(first), refused{})
	checkRefused(t, "the second one", carry(second), refusedKey)

	testca.Write(t, file, []byte("{"))
	eventually(t, "the file is known to be broken", func() bool {
		return strings.Contains(strings.Join(g.access.Problems(), "\n"), "keys of grant issuer "+granter)
	})
	checkRefused(t, "the first key of a broken file", carry(first), refused{})

	data, err := json.Marshal(nextSet)
	if err != nil {
		t.Fatal(err)
	}
	testca.Write(t, file, data)
	eventually(t, "the second key is believed", func() bool { return carry(second) == nil })
	checkRefused(t, "the first key, removed", carry(first), refusedKey)
	if problems := g.access.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}

	// So does an issuer that leaves the policy.
	policy, err := os.ReadFile(g.policy)
	if err != nil {
		t.Fatal(err)
	}
	testca.Write(t, g.policy, []byte(strings.ReplaceAll(string(policy), granter, "https://other.example")))
	eventually(t, "the issuer is not believed", func() bool { return carry(second) != nil })
	checkRefused(t, "an issuer that is not there any more", carry(second), refusedKey)
}

// A key that is new at the URL is fetched when the first grant by it comes, and counted.
func TestGrantKeysAtAURL(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	var keys atomic.Pointer[jose.JSONWebKeySet]
	keys.Store(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: set.Keys[0].Key, KeyID: "0"}}})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(keys.Load())
	}))
	defer endpoint.Close()
	policy := strings.Replace(grantPolicy("FILE"), `file: "FILE"`, fmt.Sprintf("url: %q", endpoint.URL), 1)
	g := serveAccess(t, newCA(t), policy, server.Config{})
	relay := g.as(t, exampleID("/relay"))
	keys.Store(&set)
	token := signGrant(t, key, granted(claiming(), nil))
	checkRefused(t, "a new key", invoke(t.Context(), t, relay, carrying(forMemory, token), nil), refused{})
	fetches := "promptassembly_jwks_fetches_total " + granter + " grant ok"
	if n := g.value(t, fetches); n != 2 {
		t.Errorf("%v fetches, want 2", n)
	}
	key.ID = "unknown"
	for range 20 {
		checkRefused(t, "an unknown key", invoke(t.Context(), t, relay, carrying(forMemory, signGrant(t, key, granted(claiming(), nil))), nil), refusedKey)
	}
	if n := g.value(t, fetches); n != 2 {
		t.Errorf("%v fetches, want 2: one in ten seconds", n)
	}
	if n := g.value(t, "promptassembly_identity_refusals_total key grant"); n != 20 {
		t.Errorf("%v refusals are counted, want 20", n)
	}
}

// A caller that may relay needs no scope for a prompt without memory, and nobody else may carry it.
func TestGrantWithoutMemory(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	g := serveAccess(t, newCA(t), grantPolicy(keysIn(t, set)), server.Config{})
	request := &pb.PlanPromptRequest{Segments: []*pb.PromptSegment{sent(baseKind, "", "Obey.", nil)}}
	token := signGrant(t, key, granted(request, nil))
	answer, err := pb.NewPromptAssemblyServiceClient(g.as(t, exampleID("/relay"))).PlanPrompt(
		t.Context(), &pb.PlanPromptRequest{QueryId: "q", Grant: token})
	if err != nil || answer.GetPlan().GetPrompt() != "Obey." {
		t.Errorf("%v, %v", answer, err)
	}
	checkRefused(t, "the harness is no relay", invoke(t.Context(), t, g.as(t, exampleID("/harness")), carrying(request, token), nil), refused{
		codes.PermissionDenied, "GRANT_INVALID", map[string]string{"path": "grant", "check": "relay", "identity": exampleID("/harness")},
	})
}

// Who may relay nothing of an issuer makes nobody fetch its keys, and waits for none; who may holds no room
// of those that work while it waits.
func TestWaitForGrantKeys(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	var fetches atomic.Int32
	hang := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fetches.Add(1) > 1 {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
		_ = json.NewEncoder(w).Encode(set)
	}))
	defer endpoint.Close()
	defer close(hang)
	policy := strings.Replace(grantPolicy("FILE"), `file: "FILE"`, fmt.Sprintf("url: %q", endpoint.URL), 1)
	g := serveAccess(t, newCA(t), policy, server.Config{})
	key.ID = "unknown"
	request := claiming()
	for i := range 8 {
		request.Candidates = append(request.Candidates, candidate(fmt.Sprint(i), strings.Repeat("x", 1<<17)))
	}
	token := signGrant(t, key, granted(request, nil))
	for _, id := range []string{"/harness", "/nobody"} {
		checkRefused(t, id, invoke(t.Context(), t, g.as(t, exampleID(id)), carrying(forMemory, token), nil), refusedKey)
	}
	if n := fetches.Load(); n != 1 {
		t.Errorf("%d fetches, want the first alone", n)
	}

	waited := make(chan error, 1)
	relay := g.as(t, exampleID("/relay"))
	go func() {
		_, err := pb.NewPromptAssemblyServiceClient(relay).SelectMemory(t.Context(), &pb.SelectMemoryRequest{QueryId: "q", Grant: token})
		waited <- err
	}()
	eventually(t, "the call waits", func() bool {
		return fetches.Load() == 2 && g.value(t, "promptassembly_arriving_bytes") >= 4<<20 && g.value(t, "promptassembly_in_flight_bytes") == 0
	})
	checkRefused(t, "another call meanwhile", invoke(t.Context(), t, g.as(t, exampleID("/harness")), claiming(), nil), refused{})
	hang <- struct{}{}
	checkRefused(t, "the key is not there", <-waited, refusedKey)
	g.isEmpty(t)
}

// A policy of which a part is broken is not taken at all.
func TestBrokenGrantsLeaveTokensAlone(t *testing.T) {
	before, after := newIssuer(t, "https://idp.example"), newIssuer(t, "https://idp.example")
	_, set := newGranter(t, granter, jose.EdDSA)
	keys := keysIn(t, set)
	with := func(i *issuer, grantKeys string) string {
		policy := strings.Replace(grantPolicy(grantKeys), "grants:", fmt.Sprintf(
			"issuers: [{issuer: https://idp.example, keys: {file: %q}, audiences: [prompt-assembly]}]\ngrants:", i.file()), 1)
		return strings.Replace(policy, "- {source: mtls, spiffe: spiffe://example.org/harness}",
			"- {source: jwt, issuer: https://idp.example, subject: harness}", 1)
	}
	g := serveAccess(t, newCA(t), with(before, keys), server.Config{})
	old, fresh := g.bearing(t, before.token("harness", nil)), g.bearing(t, after.token("harness", nil))
	checkRefused(t, "before", invoke(t.Context(), t, old, claiming(), nil), refused{})
	testca.Write(t, g.policy, []byte(with(after, keys+".absent")))
	eventually(t, "the new policy is known to be broken", func() bool { return len(g.access.Problems()) > 0 })
	checkRefused(t, "what was in force", invoke(t.Context(), t, old, claiming(), nil), refused{})
	checkRefused(t, "what was not taken", invoke(t.Context(), t, fresh, claiming(), nil), refused{codes.Unauthenticated, "IDENTITY_INVALID", nil})
	testca.Write(t, g.policy, []byte(with(after, keys)))
	eventually(t, "the next policy is taken", func() bool { return len(g.access.Problems()) == 0 })
	checkRefused(t, "what is not in force any more", invoke(t.Context(), t, old, claiming(), nil), refused{codes.Unauthenticated, "IDENTITY_INVALID", nil})
	checkRefused(t, "what is", invoke(t.Context(), t, fresh, claiming(), nil), refused{})
}

// The log names what was carried as soon as it is known who signed it.
func TestRefusedGrantsAreNamed(t *testing.T) {
	key, set := newGranter(t, granter, jose.EdDSA)
	g := serveAccess(t, newCA(t), grantPolicy(keysIn(t, set)), server.Config{})
	relay := g.as(t, exampleID("/relay"))
	token := signGrant(t, key, granted(claiming(), nil))
	forged := slices.Concat(token[:len(token)-4], []byte("AAAA"))
	_ = invoke(t.Context(), t, relay, &pb.SelectMemoryRequest{QueryId: "another", Grant: token}, nil)
	_ = invoke(t.Context(), t, relay, carrying(forMemory, forged), nil)
	eventually(t, "both calls are logged", func() bool { return len(g.lines(t)) >= 2 })
	lines := make(map[any]map[string]any)
	for _, line := range g.lines(t) {
		lines[line["query_id"]] = line
	}
	if lines["another"]["grant_issuer"] != granter || lines["another"]["grant_digest"] == nil || lines["another"]["refused_check"] != "query" {
		t.Errorf("for another query: %v", lines["another"])
	}
	if lines["q"]["grant_issuer"] != nil || lines["q"]["grant_digest"] != nil || lines["q"]["refused_check"] != "signature" {
		t.Errorf("forged: %v", lines["q"])
	}
}
