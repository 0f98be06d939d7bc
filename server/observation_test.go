package server_test

import (
	"bytes"
	"maps"
	"net/http"
	"testing"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// three memories of which one is selected; 103 bytes.
func three() *pb.SelectMemoryRequest {
	r := &pb.SelectMemoryRequest{QueryId: "q1", UserScope: "u", Candidates: []*pb.MemoryContextCandidate{
		candidate("a", "one"), candidate("b", "one"), candidate("c", "two"),
	}}
	r.Candidates[2].UserScope = "v"
	return r
}

func TestCallsThatAreAnsweredAreSeen(t *testing.T) {
	o := observe(t, server.Config{}, true)
	conn := dial(t, o.address)
	o.warm(t, func() { _, _ = callBytes(t, conn, "ListTokenizers", nil) })

	memories := map[string]any{"SCOPE_MISMATCH": number(1), "DUPLICATE_CONTENT": number(1), "SELECTED": number(1)}
	metrics := map[string]float64{
		"promptassembly_memory_decisions_total SCOPE_MISMATCH":    1,
		"promptassembly_memory_decisions_total DUPLICATE_CONTENT": 1,
		"promptassembly_memory_decisions_total SELECTED":          1,
		"promptassembly_budget_utilisation_ratio memory_chars":    1,
		"promptassembly_budget_utilisation_ratio memory_tokens":   1,
	}
	span := map[string]any{
		"promptassembly.memory.SCOPE_MISMATCH": int64(1), "promptassembly.memory.DUPLICATE_CONTENT": int64(1),
		"promptassembly.memory.SELECTED": int64(1),
	}
	look(t, o, selecting, "OK", sight{
		metrics: metrics,
		log: record("INFO", serviceName, "SelectMemory", "OK", 103, 612, map[string]any{
			"query_id": "q1", "scope": "0bfe935e70c321c7", "memory": memories,
		}),
		span: spanned(serviceName+"/SelectMemory", "OK", 103, 612, span),
	}, func() { _, _ = callBytes(t, conn, "SelectMemory", marshal(t, three())) })

	request := &pb.PlanPromptRequest{
		QueryId: "q2", Memory: three(),
		MaxTokens: &pb.Budget{Bound: &pb.Budget_Limit{Limit: 1000}},
		Segments: []*pb.PromptSegment{
			{Name: "rules", Required: new(true), Body: &pb.PromptSegment_Text{Text: "be nice"}},
			{Name: "empty"},
		},
	}
	maps.Copy(metrics, map[string]float64{
		"promptassembly_segment_decisions_total REQUIRED":       1,
		"promptassembly_segment_decisions_total FITS_BUDGET":    1,
		"promptassembly_segment_decisions_total EMPTY_CONTENT":  1,
		"promptassembly_budget_utilisation_ratio prompt_chars":  1,
		"promptassembly_budget_utilisation_ratio prompt_tokens": 1,
	})
	maps.Copy(span, map[string]any{
		"promptassembly.segments.REQUIRED": int64(1), "promptassembly.segments.FITS_BUDGET": int64(1),
		"promptassembly.segments.EMPTY_CONTENT": int64(1),
	})
	look(t, o, planning, "OK", sight{
		metrics: metrics,
		log: record("INFO", serviceName, "PlanPrompt", "OK", 143, 1114, map[string]any{
			"query_id": "q2", "scope": "0bfe935e70c321c7", "memory": memories,
			"segments": map[string]any{"REQUIRED": number(1), "FITS_BUDGET": number(1), "EMPTY_CONTENT": number(1)},
		}),
		span: spanned(serviceName+"/PlanPrompt", "OK", 143, 1114, span),
	}, func() { _, _ = callBytes(t, conn, "PlanPrompt", marshal(t, request)) })
}

// warm makes calls that are not looked at, such as the first of a connection.
func (o *observed) warm(t *testing.T, calls ...func()) {
	t.Helper()
	for _, call := range calls {
		lines, spans := len(o.lines(t)), len(o.spans.Ended())
		call()
		eventually(t, "the call has ended", func() bool {
			return len(o.lines(t)) > lines && len(o.spans.Ended()) > spans
		})
	}
}

func TestCallsThatAreRefusedAreSeen(t *testing.T) {
	limits := server.Limits{MessageBytes: 40_000, InFlightBytes: 128 << 10, CallerShare: 1}
	held := hold(t, limits, true)
	o := held.observed
	conn, client, p := dial(t, o.address), http2Client(t), dialPeer(t, o.address)
	ids := map[string]any{"query_id": "q1", "scope": "0bfe935e70c321c7"}
	sends := func(method string, message []byte) func() {
		return func() { _, _ = callBytes(t, conn, method, message) }
	}
	o.warm(t, sends("ListTokenizers", nil), func() { p.wait(p.request("ListTokenizers", nil)) }, func() {
		post(t, client, o.address, "ListTokenizers", bytes.NewReader(framed(0, nil)), nil)
	})
	compressed := func(encoding string) func() {
		return func() {
			header := http.Header{"Grpc-Encoding": {encoding}}
			post(t, client, o.address, "SelectMemory", bytes.NewReader(framed(1, nil)), header)
		}
	}
	edited := func(edit func(*pb.SelectMemoryRequest)) []byte {
		r := three()
		edit(r)
		return marshal(t, r)
	}
	invalid := edited(func(r *pb.SelectMemoryRequest) { r.Candidates[0].SourceRank = 0 })
	tokenizer := edited(func(r *pb.SelectMemoryRequest) { r.Tokenizer = "other" })
	many := append(marshal(t, three()), bytes.Repeat([]byte{0x32, 0}, 10_000)...)
	planned := func(edit func(*pb.PlanPromptRequest)) []byte {
		r := &pb.PlanPromptRequest{QueryId: "q1", Memory: &pb.SelectMemoryRequest{UserScope: "u"}}
		edit(r)
		return marshal(t, r)
	}
	blank := planned(func(r *pb.PlanPromptRequest) { r.Segments = []*pb.PromptSegment{blank()} })
	small := planned(func(r *pb.PlanPromptRequest) {
		r.Segments = []*pb.PromptSegment{{Name: "rules", Required: new(true), Body: &pb.PromptSegment_Text{Text: "be nice"}}}
		r.MaxChars = &pb.Budget{Bound: &pb.Budget_Limit{Limit: 1}}
	})
	for _, test := range []struct {
		name, method, code, reason string
		received                   int
		identifiers                map[string]any
		call                       func()
	}{
		{"a fault", selecting, "InvalidArgument", "INVALID_REQUEST", len(invalid), ids, sends("SelectMemory", invalid)},
		{"tokenizer", selecting, "InvalidArgument", "UNKNOWN_TOKENIZER", len(tokenizer), ids, sends("SelectMemory", tokenizer)},
		{"blank", planning, "FailedPrecondition", "REQUIRED_SEGMENT_EMPTY", len(blank), ids, sends("PlanPrompt", blank)},
		{"budget", planning, "FailedPrecondition", "REQUIRED_SEGMENTS_EXCEED_BUDGET", len(small), ids, sends("PlanPrompt", small)},
		{"undecodable", selecting, "InvalidArgument", "INVALID_REQUEST", 1, nil, sends("SelectMemory", []byte{0x32})},
		{"too many elements", selecting, "InvalidArgument", "INVALID_REQUEST", len(many), nil, sends("SelectMemory", many)},
		{"too large", selecting, "ResourceExhausted", "", 0, nil, sends("SelectMemory", make([]byte, 40_001))},
		{"nothing", selecting, "Internal", "", 0, nil, func() {
			p.wait(p.open(true, headersOf(servicePath+"SelectMemory")...))
		}},
		{"no method", unknown, "Unimplemented", "", 0, nil, sends("Other", nil)},
		{"gzip", selecting, "Unimplemented", "", 0, nil, compressed("gzip")},
		{"an unknown compression", selecting, "Unimplemented", "", 0, nil, compressed("other")},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := seen(test.method, test.code, test.reason, int64(test.received), test.identifiers)
			want.failed = test.code == "Internal" || test.code == "Unimplemented"
			look(t, o, test.method, test.code, want, test.call)
		})
	}

	// One call of a caller leaves no room for one of some size, and two for none.
	held.begin(t, p, 1)
	busy := append(marshal(t, three()), bytes.Repeat([]byte{0x32, 0}, 130)...)
	t.Run("no room for its size", func(t *testing.T) {
		want := seen(selecting, "ResourceExhausted", "OVERLOADED", int64(len(busy)), nil)
		lookBeside(t, o, selecting, "ResourceExhausted", want, sends("SelectMemory", busy))
	})
	held.begin(t, p, 3)
	t.Run("no room", func(t *testing.T) {
		want := seen(selecting, "ResourceExhausted", "OVERLOADED", 0, nil)
		lookBeside(t, o, selecting, "ResourceExhausted", want, sends("SelectMemory", busy))
	})
}
