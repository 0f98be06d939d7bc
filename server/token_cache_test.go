package server_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// Counts are remembered for a caller: of memories for each of its scopes, of segments for all of its
// calls. It shows in no answer.
func TestCountsAreRememberedForTheirTenant(t *testing.T) {
	g := serveAccess(t, newCA(t), `version: 1
callers:
  - name: agents
    identities: [{source: mtls, spiffe: "spiffe://example.org/agent/*"}]
    scopes: [{exact: u}, {exact: v}]
`, server.Config{Tokenizers: []tokens.Counter{testcounter.Pieces{}}})
	one, again, two := g.as(t, exampleID("/agent/1")), g.as(t, exampleID("/agent/1")), g.as(t, exampleID("/agent/2"))

	memories := func(scope string) *pb.SelectMemoryRequest {
		c := candidate("m1", strings.Repeat("a memory ", 20))
		c.UserScope = scope
		return &pb.SelectMemoryRequest{UserScope: scope, Candidates: list(c), Tokenizer: "test"}
	}
	prompt := &pb.PlanPromptRequest{Tokenizer: "test", Segments: list(
		&pb.PromptSegment{Name: "a", Body: &pb.PromptSegment_Text{Text: strings.Repeat("a segment ", 20)}},
		&pb.PromptSegment{Name: "b", Body: &pb.PromptSegment_Text{Text: strings.Repeat("another one ", 20)}},
	)}
	withMemory := proto.CloneOf(prompt)
	withMemory.Memory = memories("v")

	_, address := listenWith(t, server.Config{
		Tokenizers: []tokens.Counter{testcounter.Pieces{}}, Limits: server.Limits{TokenCacheBytes: -1},
	})
	forgetful := dial(t, address)
	for _, call := range []struct {
		what         string
		conn         *grpc.ClientConn
		method       string
		request      proto.Message
		hits, misses float64
	}{
		// All but a line's provenance and text is too short.
		{"the first", one, "SelectMemory", memories("u"), 0, 1},
		{"the same", one, "SelectMemory", memories("u"), 1, 0},
		{"on another connection", again, "SelectMemory", memories("u"), 1, 0},
		{"by another caller", two, "SelectMemory", memories("u"), 0, 1},
		{"by another caller again", two, "SelectMemory", memories("u"), 1, 0},
		{"in another scope", one, "SelectMemory", memories("v"), 0, 1},
		// Two segments are counted by themselves and in their places, one of them also before the other came.
		{"segments", one, "PlanPrompt", prompt, 0, 4},
		{"the same segments", one, "PlanPrompt", prompt, 4, 0},
		{"segments of another caller", two, "PlanPrompt", prompt, 0, 4},
		// The line, and of the segments what was placed alike; the memory by itself and before another, one
		// segment behind it and one between two.
		{"memory of a scope among them", one, "PlanPrompt", withMemory, 4, 4},
	} {
		before := g.values(t)
		got, err := callBytes(t, call.conn, call.method, marshal(t, call.request))
		if err != nil {
			t.Fatalf("%s: %v", call.what, err)
		}
		after := g.values(t)
		hits := after["promptassembly_token_cache_hits_total test"] - before["promptassembly_token_cache_hits_total test"]
		misses := after["promptassembly_token_cache_misses_total test"] - before["promptassembly_token_cache_misses_total test"]
		if hits != call.hits || misses != call.misses {
			t.Errorf("%s: %.0f texts were remembered and %.0f counted, want %.0f and %.0f", call.what, hits, misses, call.hits, call.misses)
		}
		want, err := callBytes(t, forgetful, call.method, marshal(t, call.request))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: without a cache the answer is another one (%v)", call.what, err)
		}
	}
	if held := g.value(t, "promptassembly_token_cache_bytes"); held <= 0 || held > 32<<20 {
		t.Errorf("the cache takes %.0f bytes", held)
	}
}
