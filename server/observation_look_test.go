package server_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	otelcodes "go.opentelemetry.io/otel/codes"
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
	if d, ok := line["duration_ms"].(number); !ok || d <= 0 {
		t.Errorf("duration_ms %v", line["duration_ms"])
	}
	if id := ended[0].SpanContext().TraceID().String(); line["trace_id"] != id {
		t.Errorf("trace id %v, want %s", line["trace_id"], id)
	}
	for _, name := range []string{"time", "duration_ms", "trace_id"} {
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

// capital is where a code's next word begins.
var capital = regexp.MustCompile(`\B[A-Z]`)

// seen is a sight of a call that was refused before anything was decided.
func seen(series, code, reason string, received int64, identifiers map[string]any) sight {
	method, service, _ := strings.Cut(series, " ")
	service, _, _ = strings.Cut(service, " ")
	s := sight{
		log:  record("INFO", service, method, code, number(received), 0, identifiers),
		span: spanned(service+"/"+method, strings.ToUpper(capital.ReplaceAllString(code, "_$0")), received, 0, nil),
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
