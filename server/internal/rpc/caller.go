package rpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"

	"github.com/promptassembly/promptassembly/server/internal/admission"
)

// caller is what a caller may take of the server. As long as callers are not authenticated, a
// connection is one.
type caller struct {
	inFlight, buffered *admission.Account
	// expected is what a call is charged for until its size is known: the mean of those before it,
	// the last ones counting most.
	expected atomic.Int64
}

// The least and the most that a call is charged for until its size is known. The least is half of
// what a stream may receive before somebody reads it. The most keeps one large call from being in the
// way of many small ones that follow.
const (
	leastExpected = 32 << 10
	mostExpected  = 256 << 10
)

// learn takes the size of a call into account for those to come.
func (c *caller) learn(size int64) {
	expected := c.expected.Load()
	size = min(size, mostExpected)
	c.expected.Store(max(leastExpected, expected+(size-expected)/8)) // another call's size may be lost
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

// callers is a stats.Handler that tells connections apart.
type callers struct {
	inFlight, buffered *admission.Gate
}

// TagConn implements stats.Handler.
func (c callers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	caller := &caller{inFlight: c.inFlight.Open(), buffered: c.buffered.Open()}
	caller.learn(leastExpected)
	return context.WithValue(ctx, callerKey{}, caller)
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

// arrival is a call from when its headers are read.
type arrival struct {
	caller *caller
	room   admission.Ticket
	full   bool // there is no room
	cancel context.CancelFunc
	// begin returns false if the call ended before anybody answered it; its room is given back then.
	begin func() bool
}

type arrivalKey struct{}

func arrivalOf(ctx context.Context) *arrival { return ctx.Value(arrivalKey{}).(*arrival) }

// arrive takes room for a call, bounds its time and lets it be cancelled. It runs on the goroutine
// that reads the connection: were room taken only when a call's turn comes, those that wait for their
// turn would not count. A call without room is refused in its turn, with all that belongs to it.
func (s *Service) arrive(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !s.methods[info.FullMethodName] {
		return ctx, nil
	}
	a := &arrival{caller: callerOf(ctx)}
	ctx, a.cancel = context.WithTimeout(context.WithValue(ctx, arrivalKey{}, a), s.callTimeout)
	var admitted bool
	a.room, admitted = a.caller.inFlight.Admit(a.caller.expected.Load())
	a.full = !admitted
	a.begin = context.AfterFunc(ctx, a.room.Release)
	return ctx, nil
}
