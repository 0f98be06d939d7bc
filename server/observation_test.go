package server_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	otelcodes "go.opentelemetry.io/otel/codes"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// sight is what is to be seen of one call.
type sight struct {
	metrics map[string]float64 // by how much each series grows, but for those of every call
	log     map[string]any     // but for time, duration and trace
	span    map[string]any     // attributes, but for the server's address
	failed  bool               // the span
}

// number is how JSON numbers are decoded.
type number = float64

// look makes one call, compares what is to be seen of it, and checks that it leaves nothing behind.
func look(t *testing.T, o *observed, method, code string, want sight, call func()) {
	t.Helper()
	lookBeside(t, o, method, code, want, call)
	o.isEmpty(t)
}

// lookBeside is look while other calls are in flight.
func lookBeside(t *testing.T, o *observed, method, code string, want sight, call func()) {
	t.Helper()
	before, lines, spans := o.values(t), len(o.lines(t)), len(o.spans.Ended())
	call()
	eventually(t, "the call is logged and its span has ended", func() bool {
		return len(o.lines(t)) > lines && len(o.spans.Ended()) > spans
	})
	eventually(t, "the call has given back its room", func() bool {
		return o.value(t, "promptassembly_in_flight_bytes") == before["promptassembly_in_flight_bytes"]
	})

	metrics := map[string]float64{
		"grpc_server_started_total " + method:              1,
		"grpc_server_handled_total " + code + " " + method: 1,
		"grpc_server_handling_seconds " + method:           1,
	}
	maps.Copy(metrics, want.metrics)
	grown := o.values(t)
	for series := range grown {
		if grown[series] -= before[series]; grown[series] == 0 {
			delete(grown, series)
		}
	}
	if diff := cmp.Diff(metrics, grown); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}

	logged := o.lines(t)[lines:]
	ended := o.spans.Ended()[spans:]
	if len(logged) != 1 || len(ended) != 1 {
		t.Fatalf("%d lines and %d spans, want 1 and 1", len(logged), len(ended))
	}
	line := logged[0]
	if d, ok := line["duration"].(number); !ok || d <= 0 {
		t.Errorf("duration %v", line["duration"])
	}
	if id := ended[0].SpanContext().TraceID().String(); line["trace_id"] != id {
		t.Errorf("trace id %v, want %s", line["trace_id"], id)
	}
	for _, name := range []string{"time", "duration", "trace_id"} {
		delete(line, name)
	}
	if diff := cmp.Diff(want.log, line); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}

	attributes := make(map[string]any)
	for _, a := range ended[0].Attributes() {
		if !strings.HasPrefix(string(a.Key), "server.") {
			attributes[string(a.Key)] = a.Value.AsInterface()
		}
	}
	if diff := cmp.Diff(want.span, attributes); diff != "" {
		t.Errorf("span (-want +got):\n%s", diff)
	}
	if name, _ := attributes["rpc.method"].(string); ended[0].Name() != name {
		t.Errorf("the span is %q, want %q", ended[0].Name(), name)
	}
	if failed := ended[0].Status().Code == otelcodes.Error; failed != want.failed || len(ended[0].Events()) > 0 {
		t.Errorf("status %v, events %v", ended[0].Status(), ended[0].Events())
	}
}

// lines returns the records of the log.
func (o *observed) lines(t testing.TB) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for d := json.NewDecoder(strings.NewReader(o.log.String())); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

const (
	selecting = "SelectMemory " + serviceName + " unary"
	planning  = "PlanPrompt " + serviceName + " unary"
	unknown   = "unknown unknown unknown"
)

// record returns the attributes that the record of every call has, and more.
func record(level, service, method, code string, received, sent number, more map[string]any) map[string]any {
	r := map[string]any{
		"level": level, "msg": "call", "service": service, "method": method, "code": code,
		"request_bytes": received, "response_bytes": sent,
	}
	maps.Copy(r, more)
	return r
}

// spanned is record for a span.
func spanned(method, code string, received, sent int64, more map[string]any) map[string]any {
	r := map[string]any{
		"rpc.system.name": "grpc", "rpc.method": method, "rpc.response.status_code": code,
		"promptassembly.request_bytes": received, "promptassembly.response_bytes": sent,
	}
	maps.Copy(r, more)
	return r
}

// seen is a sight of a call that was refused before anything was decided.
func seen(series, code, status, reason string, received int64, identifiers map[string]any) sight {
	method, service, _ := strings.Cut(series, " ")
	service, _, _ = strings.Cut(service, " ")
	s := sight{
		log:  record("INFO", service, method, code, number(received), 0, identifiers),
		span: spanned(service+"/"+method, status, received, 0, nil),
	}
	if service == "unknown" {
		s.log["level"], s.span["rpc.method"] = "DEBUG", "_OTHER"
	}
	if reason != "" {
		s.metrics = map[string]float64{"promptassembly_refusals_total " + reason: 1}
		s.log["reason"], s.span["promptassembly.reason"] = reason, reason
	}
	return s
}

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
	o := observe(t, server.Config{Limits: server.Limits{MessageBytes: 40_000, InFlightBytes: 128 << 10, CallerShare: 1}}, true)
	conn, client, p := dial(t, o.address), http2Client(t), dialPeer(t, o.address)
	ids := map[string]any{"query_id": "q1", "scope": "0bfe935e70c321c7"}
	sends := func(method string, message []byte) func() {
		return func() { _, _ = callBytes(t, conn, method, message) }
	}
	o.warm(t, sends("ListTokenizers", nil), func() { p.wait(p.request("ListTokenizers", nil)) }, func() {
		post(t, client, o.address, "ListTokenizers", bytes.NewReader(framed(0, nil)), nil)
	})
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
		name, method, code, status, reason string
		received                           int
		identifiers                        map[string]any
		call                               func()
	}{
		{"a fault", selecting, "InvalidArgument", "INVALID_ARGUMENT", "INVALID_REQUEST", len(invalid), ids, sends("SelectMemory", invalid)},
		{"tokenizer", selecting, "InvalidArgument", "INVALID_ARGUMENT", "UNKNOWN_TOKENIZER", len(tokenizer), ids, sends("SelectMemory", tokenizer)},
		{"blank", planning, "FailedPrecondition", "FAILED_PRECONDITION", "REQUIRED_SEGMENT_EMPTY", len(blank), ids, sends("PlanPrompt", blank)},
		{"budget", planning, "FailedPrecondition", "FAILED_PRECONDITION", "REQUIRED_SEGMENTS_EXCEED_BUDGET", len(small), ids, sends("PlanPrompt", small)},
		{"undecodable", selecting, "InvalidArgument", "INVALID_ARGUMENT", "INVALID_REQUEST", 1, nil, sends("SelectMemory", []byte{0x32})},
		{"too many elements", selecting, "InvalidArgument", "INVALID_ARGUMENT", "INVALID_REQUEST", len(many), nil, sends("SelectMemory", many)},
		{"too large", selecting, "ResourceExhausted", "RESOURCE_EXHAUSTED", "", 0, nil, sends("SelectMemory", make([]byte, 40_001))},
		{"nothing", selecting, "Internal", "INTERNAL", "", 0, nil, func() { p.wait(p.open(true, headersOf(servicePath+"SelectMemory")...)) }},
		{"no method", unknown, "Unimplemented", "UNIMPLEMENTED", "", 0, nil, sends("Other", nil)},
		{"gzip", selecting, "Unimplemented", "UNIMPLEMENTED", "", 0, nil, func() {
			post(t, client, o.address, "SelectMemory", bytes.NewReader(framed(1, nil)), http.Header{"Grpc-Encoding": {"gzip"}})
		}},
		{"an unknown compression", selecting, "Unimplemented", "UNIMPLEMENTED", "", 0, nil, func() {
			post(t, client, o.address, "SelectMemory", bytes.NewReader(framed(1, nil)), http.Header{"Grpc-Encoding": {"other"}})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := seen(test.method, test.code, test.status, test.reason, int64(test.received), test.identifiers)
			if test.code == "Internal" {
				want.log["level"] = "ERROR"
			}
			want.failed = test.code == "Internal" || test.code == "Unimplemented"
			look(t, o, test.method, test.code, want, test.call)
		})
	}

	// One call of a caller leaves no room for one of some size, and two for none.
	begin(t, o, p, 1)
	busy := append(marshal(t, three()), bytes.Repeat([]byte{0x32, 0}, 100)...)
	t.Run("no room for its size", func(t *testing.T) {
		want := seen(selecting, "ResourceExhausted", "RESOURCE_EXHAUSTED", "OVERLOADED", int64(len(busy)), nil)
		lookBeside(t, o, selecting, "ResourceExhausted", want, sends("SelectMemory", busy))
	})
	begin(t, o, p, 3)
	t.Run("no room", func(t *testing.T) {
		want := seen(selecting, "ResourceExhausted", "RESOURCE_EXHAUSTED", "OVERLOADED", 0, nil)
		lookBeside(t, o, selecting, "ResourceExhausted", want, sends("SelectMemory", busy))
	})
}
