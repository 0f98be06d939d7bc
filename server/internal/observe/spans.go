package observe

import (
	"context"

	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// Spans is the stats.Handler that makes spans, but for what their caller could write into them: the
// name of a method that there is not, and the message of a status, in which gRPC quotes headers.
type Spans struct {
	stats.Handler
	Observer *Observer // knows the methods
}

// otherMethod is what OpenTelemetry calls a method that the server does not know.
const otherMethod = "/_OTHER"

// TagRPC implements stats.Handler.
func (s Spans) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if _, known := s.Observer.methods[info.FullMethodName]; !known {
		info = &stats.RPCTagInfo{FullMethodName: otherMethod, FailFast: info.FailFast}
	}
	return s.Handler.TagRPC(ctx, info)
}

// HandleRPC implements stats.Handler.
func (s Spans) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if end, ok := event.(*stats.End); ok && end.Error != nil {
		bare := *end
		bare.Error = status.Error(status.Code(end.Error), "")
		event = &bare
	}
	s.Handler.HandleRPC(ctx, event)
}
