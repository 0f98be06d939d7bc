// Package observe counts, logs and annotates every call, those included that are refused before any
// interceptor runs: by their size, in decoding, or for an unknown method.
package observe

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// Observer is a stats.Handler that observes every call. It stands before the one that makes spans,
// so that a call's span is still open when it is annotated.
type Observer struct {
	Log     *slog.Logger             // receives a record a call; nil: none
	Scope   func(user string) string // how Log shows a user scope; empty: not at all
	Metrics *Metrics                 // nil: none
	methods map[string]method        // by full name
}

// method is a method as metrics and the log name it.
type method struct{ kind, service, name string }

// Know tells the observer which methods there are, before the first call. Whatever else is called
// counts as one, "unknown".
func (o *Observer) Know(services map[string]grpc.ServiceInfo) {
	o.methods = make(map[string]method)
	for service, info := range services {
		for _, m := range info.Methods {
			o.methods["/"+service+"/"+m.Name] = method{kind(m), service, m.Name}
		}
	}
}

func kind(m grpc.MethodInfo) string {
	switch {
	case m.IsClientStream && m.IsServerStream:
		return "bidi_stream"
	case m.IsClientStream:
		return "client_stream"
	case m.IsServerStream:
		return "server_stream"
	default:
		return "unary"
	}
}

// TagRPC implements stats.Handler.
func (o *Observer) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	m, known := o.methods[info.FullMethodName]
	if !known {
		m = method{"unknown", "unknown", "unknown"}
	}
	return context.WithValue(ctx, callKey{}, &Call{method: m})
}

// HandleRPC implements stats.Handler.
func (o *Observer) HandleRPC(ctx context.Context, event stats.RPCStats) {
	call := From(ctx)
	switch event := event.(type) {
	case *stats.InHeader:
		call.compression = event.Compression
		if parent := event.Header.Get("traceparent"); len(parent) == 1 {
			call.traceID = traceID(parent[0])
		}
	case *stats.Begin:
		o.Metrics.started(call.method)
	case *stats.InPayload:
		call.requestBytes += event.Length
	case *stats.OutPayload:
		call.responseBytes += event.Length
	case *stats.End:
		o.end(ctx, call, event)
	}
}

// TagConn implements stats.Handler.
func (*Observer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (o *Observer) HandleConn(_ context.Context, event stats.ConnStats) {
	switch event.(type) {
	case *stats.ConnBegin:
		o.Metrics.connections(1)
	case *stats.ConnEnd:
		o.Metrics.connections(-1)
	}
}

func (o *Observer) end(ctx context.Context, call *Call, event *stats.End) {
	s := status.Convert(event.Error)
	reason := refusedFor(s)
	duration := event.EndTime.Sub(event.BeginTime)
	o.Metrics.ended(call, s.Code(), reason, duration)

	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		annotate(span, call, reason)
	}
	if id := span.SpanContext().TraceID(); id.IsValid() {
		call.traceID = id.String()
	}
	o.log(ctx, call, s.Code(), reason, duration)
}

// traceID returns the trace id of a traceparent header, or "".
func traceID(parent string) string {
	carrier := propagation.MapCarrier{"traceparent": parent}
	remote := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	if !remote.IsValid() {
		return ""
	}
	return remote.TraceID().String()
}

// refusedFor returns the reason of one of the service's own refusals, or "": an interceptor's errors
// could hold anything.
func refusedFor(s *status.Status) string {
	for _, detail := range s.Proto().GetDetails() {
		info := new(errdetails.ErrorInfo)
		if !detail.MessageIs(info) || detail.UnmarshalTo(info) != nil {
			continue
		}
		if _, known := pb.ErrorReason_value["ERROR_REASON_"+info.GetReason()]; known && info.GetDomain() == domain {
			return info.GetReason()
		}
	}
	return ""
}

// domain is the ErrorInfo.domain of the service's refusals.
const domain = "promptassembly"

// annotate gives the span the counts of its call.
func annotate(span trace.Span, call *Call, reason string) {
	attributes := []attribute.KeyValue{
		attribute.Int("promptassembly.request_bytes", call.requestBytes),
		attribute.Int("promptassembly.response_bytes", call.responseBytes),
	}
	if reason != "" {
		attributes = append(attributes, attribute.String("promptassembly.reason", reason))
	}
	for i, n := range call.memory {
		if n > 0 {
			attributes = append(attributes, attribute.Int("promptassembly.memory."+memoryReason(i), n))
		}
	}
	for i, n := range call.segments {
		if n > 0 {
			attributes = append(attributes, attribute.Int("promptassembly.segments."+segmentReason(i), n))
		}
	}
	span.SetAttributes(attributes...)
}

// log writes the record of a call. Calls that are not the service's own, such as health checks, are
// there at the level of debugging.
func (o *Observer) log(ctx context.Context, call *Call, code codes.Code, reason string, duration time.Duration) {
	level := slog.LevelInfo // a bug is logged by itself: gRPC says INTERNAL for what callers do, too
	if call.method.service != pb.PromptAssemblyService_ServiceDesc.ServiceName {
		level = slog.LevelDebug
	}
	if o.Log == nil || !o.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("service", call.method.service), slog.String("method", call.method.name),
		slog.String("code", code.String()), slog.Float64("duration_ms", float64(duration.Microseconds())/1000),
		slog.Int("request_bytes", call.requestBytes), slog.Int("response_bytes", call.responseBytes))
	for _, optional := range []struct{ key, value string }{
		{"reason", reason},
		{"identity", call.identity.Name},
		{"identity_source", string(call.identity.Source)},
		{"identity_issuer", call.identity.Issuer},
		{"refused_source", call.unidentified.source},
		{"refused_check", call.unidentified.check},
		{"grant_issuer", call.granted.issuer},
		{"grant_digest", call.granted.digest},
		{"query_id", call.queryID},
		{"scope", o.scope(call.scope)},
		{"trace_id", call.traceID},
	} {
		if optional.value != "" {
			attrs = append(attrs, slog.String(optional.key, optional.value))
		}
	}
	attrs = appendCounts(attrs, "memory", call.memory[:], memoryReason)
	attrs = appendCounts(attrs, "segments", call.segments[:], segmentReason)
	o.Log.LogAttrs(ctx, level, "call", attrs...)
}

func (o *Observer) scope(user string) string {
	if user == "" {
		return ""
	}
	return o.Scope(user)
}

// appendCounts adds a group with the counts that are not 0, unless all are.
func appendCounts(attrs []slog.Attr, group string, counts []int, name func(int) string) []slog.Attr {
	var counted []slog.Attr
	for i, n := range counts {
		if n > 0 {
			counted = append(counted, slog.Int(name(i), n))
		}
	}
	if counted == nil {
		return attrs
	}
	return append(attrs, slog.Attr{Key: group, Value: slog.GroupValue(counted...)})
}

var (
	memoryReasons  = names(pb.MemoryDecisionReason_name, "MEMORY_DECISION_REASON_")
	segmentReasons = names(pb.SegmentDecisionReason_name, "SEGMENT_DECISION_REASON_")
)

func memoryReason(i int) string  { return memoryReasons[i] }
func segmentReason(i int) string { return segmentReasons[i] }

// names returns an enum's names without their prefix, by number.
func names(enum map[int32]string, prefix string) []string {
	short := make([]string, len(enum))
	for number, name := range enum {
		short[number] = strings.TrimPrefix(name, prefix)
	}
	return short
}
