package server_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// observed is a server on a loopback port and all that can be seen of it.
type observed struct {
	*server.Server
	address string
	metrics *prometheus.Registry
	log     *lockedBuffer // in JSON, at the level of debugging
	spans   *tracetest.SpanRecorder
}

// observe serves a server that logs calls, counts them and, unless tracing is false, makes spans.
func observe(t testing.TB, cfg server.Config, tracing bool) *observed {
	t.Helper()
	o := &observed{metrics: prometheus.NewRegistry(), log: new(lockedBuffer), spans: tracetest.NewSpanRecorder()}
	cfg.Logger = slog.New(slog.NewJSONHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.CallLog.On = true
	cfg.Metrics = o.metrics
	if tracing {
		cfg.Tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans))
	}
	o.Server, o.address = listenWith(t, cfg)
	return o
}

// values returns the value of every series, by its name and labels; of a histogram, its count.
func (o *observed) values(t testing.TB) map[string]float64 {
	t.Helper()
	families, err := o.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			values[strings.TrimSpace(family.GetName()+" "+strings.Join(labels, " "))] = cmp.Or(
				metric.GetCounter().GetValue(), metric.GetGauge().GetValue(),
				float64(metric.GetHistogram().GetSampleCount()))
		}
	}
	return values
}

// value returns the value of one series, 0 if there is none.
func (o *observed) value(t testing.TB, series string) float64 {
	t.Helper()
	return o.values(t)[series]
}

// isEmpty checks that, before long, nothing is held for any call.
func (o *observed) isEmpty(t testing.TB) {
	t.Helper()
	for _, gauge := range []string{"promptassembly_in_flight_bytes", "promptassembly_arriving_bytes", "promptassembly_answers_bytes"} {
		eventually(t, gauge+" is 0", func() bool { return o.value(t, gauge) == 0 })
	}
}

// hasConnections checks that, before long, so many connections are open.
func (o *observed) hasConnections(t testing.TB, n float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%.0f connections are open", n), func() bool {
		return o.value(t, "promptassembly_connections") == n
	})
}

// isAlive checks that a call of a caller of its own is answered.
func (o *observed) isAlive(t testing.TB) {
	t.Helper()
	conn := dial(t, o.address)
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	request := &pb.SelectMemoryRequest{UserScope: "u", Candidates: []*pb.MemoryContextCandidate{candidate("m", "text")}}
	resp, err := pb.NewPromptAssemblyServiceClient(conn).SelectMemory(ctx, request)
	if err != nil || fmt.Sprint(resp.GetPlan().GetSelectedMemoryIds()) != "[m]" {
		t.Errorf("another caller: %v, %v, want its memory", resp, err)
	}
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 10 s it is not so that %s", what)
		}
	}
}
