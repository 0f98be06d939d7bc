package server_test

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// The scope "u" as the call log shows it, and nothing where the request holds none that is valid.
func TestScopesInTheLog(t *testing.T) {
	for name, test := range map[string]struct {
		log  server.CallLog
		want any
	}{
		"hashed":                  {server.CallLog{}, "0bfe935e70c321c7"}, // printf u | sha256sum
		"hashed with a key":       {server.CallLog{ScopeKey: []byte("key of the log")}, "7ff37a4cc7cf4a9c"},
		"plain":                   {server.CallLog{Scope: server.ScopePlain}, "u"},
		"plain, key or not":       {server.CallLog{Scope: server.ScopePlain, ScopeKey: []byte("k")}, "u"},
		"omitted":                 {server.CallLog{Scope: server.ScopeOmitted}, nil},
		"a way that there is not": {server.CallLog{Scope: 17}, "0bfe935e70c321c7"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{CallLog: test.log}, false)
			client := pb.NewPromptAssemblyServiceClient(dial(t, o.address))
			for i, scope := range []string{"u", "", "u\n", strings.Repeat("u", 257)} {
				_, _ = client.PlanPrompt(t.Context(), &pb.PlanPromptRequest{Memory: &pb.SelectMemoryRequest{UserScope: scope}})
				eventually(t, "the call is logged", func() bool { return len(o.lines(t)) > i })
				want := test.want
				if i > 0 {
					want = nil
				}
				if got := o.lines(t)[i]["scope"]; got != want {
					t.Errorf("%q is shown as %v, want %v", scope, got, want)
				}
			}
		})
	}
}

// Only identifiers that are valid are logged, also of requests that are refused.
func TestQueryIDsInTheLog(t *testing.T) {
	o := observe(t, server.Config{}, false)
	client := pb.NewPromptAssemblyServiceClient(dial(t, o.address))
	for i, test := range []struct {
		id   string
		want any
	}{
		{"q", "q"}, {"é\"\\", "é\"\\"}, {"", nil}, {" ", nil}, {"q\n", nil}, {"q\u2028", nil}, {strings.Repeat("q", 257), nil},
	} {
		_, _ = client.SelectMemory(t.Context(), &pb.SelectMemoryRequest{QueryId: test.id})
		eventually(t, "the call is logged", func() bool { return len(o.lines(t)) > i })
		if got := o.lines(t)[i]["query_id"]; got != test.want {
			t.Errorf("%q is logged as %v, want %v", test.id, got, test.want)
		}
	}
}

// The trace of a caller is in the log, whether the server makes spans or not.
func TestTraceIDsInTheLog(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for name, tracing := range map[string]bool{"with spans": true, "without spans": false} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{}, tracing)
			client := pb.NewPromptAssemblyServiceClient(dial(t, o.address))
			for i, test := range []struct {
				parents []string
				want    any
			}{
				{[]string{"00-" + id + "-00f067aa0ba902b7-01"}, id},
				{[]string{"00-" + id + "-00f067aa0ba902b7-00"}, id}, // which is not sampled
				{nil, nil},
				{[]string{"00-" + id + "-0000000000000000-01"}, nil},
				{[]string{canary}, nil},
				{[]string{"00-" + id + "-00f067aa0ba902b7-01", canary}, nil},
			} {
				ctx := t.Context()
				for _, parent := range test.parents {
					ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", parent)
				}
				_, _ = client.ListTokenizers(ctx, new(pb.ListTokenizersRequest))
				eventually(t, "the call is logged", func() bool { return len(o.lines(t)) > i })
				got := o.lines(t)[i]["trace_id"]
				if test.want == nil && tracing { // then it is the server's own
					if s, _ := got.(string); len(s) != 32 || s == id && len(test.parents) == 1 {
						t.Errorf("%v: trace %v, want one of its own", test.parents, got)
					}
					continue
				}
				if got != test.want {
					t.Errorf("%v: trace %v, want %v", test.parents, got, test.want)
				}
			}
		})
	}
	o := observe(t, server.Config{}, true)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	_, _ = pb.NewPromptAssemblyServiceClient(dial(t, o.address)).ListTokenizers(ctx, new(pb.ListTokenizersRequest))
	eventually(t, "the span has ended", func() bool { return len(o.spans.Ended()) > 0 })
	if parent := o.spans.Ended()[0].Parent(); parent.TraceID().String() != id || parent.SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("the span is a part of %v", parent)
	}
}

// Health checks are counted and traced as any call, and logged at the level of debugging.
func TestHealthChecksAreSeen(t *testing.T) {
	o := observe(t, server.Config{}, true)
	conn := dial(t, o.address)
	o.warm(t, func() { _, _ = callBytes(t, conn, "ListTokenizers", nil) })
	look(t, o, "Check grpc.health.v1.Health unary", "OK", sight{
		log:  record("DEBUG", "grpc.health.v1.Health", "Check", "OK", 0, 2, nil),
		span: spanned("grpc.health.v1.Health/Check", "OK", 0, 2, nil),
	}, func() { _, _ = healthpb.NewHealthClient(conn).Check(t.Context(), new(healthpb.HealthCheckRequest)) })
}

// Where nothing is configured, nothing is logged.
func TestCallLogIsOff(t *testing.T) {
	var log lockedBuffer
	_, address := listenWith(t, server.Config{
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(&log), &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	_, _ = callBytes(t, dial(t, address), "SelectMemory", marshal(t, selected(nil)))
	if text := log.String(); text != "" {
		t.Errorf("the server logged:\n%s", text)
	}
}
