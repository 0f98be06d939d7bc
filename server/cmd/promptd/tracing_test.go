package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// clearEnvironment takes OpenTelemetry's variables out of the environment, and puts these in.
func clearEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// received is what a collector got.
type received chan *collector.ExportTraceServiceRequest

// grpcCollector answers OTLP over gRPC.
type grpcCollector struct {
	collector.UnimplementedTraceServiceServer
	received
}

func (c grpcCollector) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.received <- request
	return new(collector.ExportTraceServiceResponse), nil
}

func collectGRPC(t *testing.T) (received, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	c := grpcCollector{received: make(received, 10)}
	collector.RegisterTraceServiceServer(s, c)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return c.received, "http://" + listener.Addr().String()
}

// collectHTTP answers OTLP over HTTP.
func collectHTTP(t *testing.T) (received, string) {
	t.Helper()
	c := make(received, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := new(collector.ExportTraceServiceRequest)
		if err != nil || proto.Unmarshal(body, request) != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		c <- request
	}))
	t.Cleanup(s.Close)
	return c, s.URL
}

func TestTraces(t *testing.T) {
	for protocol, collect := range map[string]func(*testing.T) (received, string){
		"grpc": collectGRPC, "http/protobuf": collectHTTP, "": collectHTTP,
	} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			got, endpoint := collect(t)
			clearEnvironment(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_RESOURCE_ATTRIBUTES": "zone=here",
			})
			provider, flush, err := newTracing(t.Context(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			tracer := provider.Tracer("test")
			_, span := tracer.Start(t.Context(), "a span")
			span.End()
			_, unsampled := tracer.Start(trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Remote: true,
			})), "of a caller that does not want it")
			unsampled.End()
			flush()
			if len(got) != 1 {
				t.Fatalf("%d exports, want 1", len(got))
			}
			spans := (<-got).GetResourceSpans()
			attributes := make(map[string]string)
			for _, attribute := range spans[0].GetResource().GetAttributes() {
				attributes[attribute.GetKey()] = attribute.GetValue().GetStringValue()
			}
			if attributes["service.name"] != "promptd" || attributes["zone"] != "here" || attributes["service.version"] == "" {
				t.Errorf("resource %v", attributes)
			}
			if names := spans[0].GetScopeSpans()[0].GetSpans(); len(names) != 1 || names[0].GetName() != "a span" {
				t.Errorf("spans %v, want the sampled one", names)
			}
		})
	}
}

func TestTracesOfAnotherName(t *testing.T) {
	got, endpoint := collectHTTP(t)
	clearEnvironment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint + "/v1/traces", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_SERVICE_NAME": "assembler", "OTEL_TRACES_EXPORTER": "otlp",
	})
	provider, flush, err := newTracing(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "a span")
	span.End()
	flush()
	if text := (<-got).String(); !strings.Contains(text, `"assembler"`) || strings.Contains(text, `"promptd"`) {
		t.Errorf("exported %s", text)
	}
}

func TestNoTraces(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, variables := range map[string]map[string]string{
		"no endpoint": {},
		"disabled":    {endpoint: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"},
		"none":        {endpoint: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t, variables)
			provider, flush, err := newTracing(t.Context(), slog.New(slog.DiscardHandler))
			if provider != nil || err != nil {
				t.Errorf("provider %v, %v, want none", provider, err)
			}
			flush()
		})
	}
}

func TestTracesThatAreRefused(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for want, variables := range map[string]map[string]string{
		`OTEL_EXPORTER_OTLP_PROTOCOL is "http/json": must be grpc or http/protobuf`: {endpoint: "http://x:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
		`OTEL_TRACES_EXPORTER is "zipkin": must be otlp or none`:                    {"OTEL_TRACES_EXPORTER": "zipkin"},
		`OTEL_EXPORTER_OTLP_ENDPOINT is no URL such as http://localhost:4318`:       {endpoint: "localhost:4318"},
		`OTEL_RESOURCE_ATTRIBUTES must be key=value`:                                {endpoint: "http://x:1", "OTEL_RESOURCE_ATTRIBUTES": "hunter2"},
	} {
		t.Run(want, func(t *testing.T) {
			clearEnvironment(t, variables)
			var stderr bytes.Buffer
			status := run(t.Context(), withAccess("--listen", "127.0.0.1:0", "--admin-listen", "off"), nil, io.Discard, &stderr)
			if status != exitUsage || !strings.Contains(stderr.String(), want) || strings.Contains(stderr.String(), "hunter2") {
				t.Errorf("exit status %d with %s", status, stderr.String())
			}
		})
	}
}

// A collector that is gone delays the end a little and changes no exit status.
func TestTracesThatAreLost(t *testing.T) {
	clearEnvironment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
	var log bytes.Buffer
	provider, flush, err := newTracing(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "a span")
	span.End()
	flush()
	p := start(t)
	p.stop()
	if status := p.ends(t); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
}
