package rpc

import (
	"context"

	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"

	"github.com/promptassembly/promptassembly/server/internal/admission"
)

// caller is what a caller may take of the server. As long as callers are not authenticated, a
// connection is one.
type caller struct {
	inFlight, buffered *admission.Account
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

// callers is a stats.Handler that tells connections apart.
type callers struct {
	inFlight, buffered *admission.Gate
}

// TagConn implements stats.Handler.
func (c callers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{c.inFlight.Open(), c.buffered.Open()})
}

// HandleConn implements stats.Handler. The answers that a connection has not sent are forgotten with
// it; the calls that it has begun go on, and end by themselves.
func (callers) HandleConn(ctx context.Context, event stats.ConnStats) {
	if _, ended := event.(*stats.ConnEnd); ended {
		callerOf(ctx).buffered.Close()
	}
}

// TagRPC implements stats.Handler.
func (callers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (callers) HandleRPC(context.Context, stats.RPCStats) {}

type cancelKey struct{}

// limitTime bounds the time of the service's calls, and lets them be cancelled. It runs for each
// call on the goroutine that reads its connection.
func (s *Service) limitTime(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !s.methods[info.FullMethodName] {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	return context.WithValue(ctx, cancelKey{}, cancel), nil
}

// cancelCall ends the call that ctx belongs to, also while its request is received.
func cancelCall(ctx context.Context) {
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}
