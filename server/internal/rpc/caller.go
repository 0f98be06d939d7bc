package rpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/stats"

	"github.com/promptassembly/promptassembly/server/internal/admission"
)

// Gates bound the memory that calls take.
type Gates struct {
	// InFlight is for calls while they wait for their turn and are answered.
	InFlight *admission.Gate
	// Arriving is for requests that take long to arrive.
	Arriving *admission.Gate
	// Answers is for answers until their callers have read them.
	Answers *admission.Gate
}

// caller is what a connection takes of the server. Once it is known who calls, a call in flight counts
// for that identity.
type caller struct {
	inFlight, arriving, answers *admission.Account
	// expected is what a call is charged for until its size is known: the mean of those before it,
	// the last ones counting most.
	expected   atomic.Int64
	identified atomic.Bool // whoever called last
	introduce  func()      // says that somebody was identified
	disconnect func()
}

// Connection is what the remote address of a connection can do beside.
type Connection interface {
	net.Addr
	// Close closes the connection.
	Close() error
	// Identified says that a caller was identified on the connection.
	Identified()
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
type callers struct{ gates Gates }

// TagConn implements stats.Handler.
func (c callers) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	caller := &caller{
		inFlight:   c.gates.InFlight.Open(),
		arriving:   c.gates.Arriving.Open(),
		answers:    c.gates.Answers.Open(),
		introduce:  func() {},
		disconnect: func() {},
	}
	caller.learn(leastExpected)
	if conn, ok := info.RemoteAddr.(Connection); ok {
		caller.introduce = sync.OnceFunc(conn.Identified)
		caller.disconnect = func() { _ = conn.Close() }
	}
	return context.WithValue(ctx, callerKey{}, caller)
}

// HandleConn implements stats.Handler. The answers that a connection has not sent are forgotten with
// it; the calls that it has begun go on, and end by themselves.
func (callers) HandleConn(ctx context.Context, event stats.ConnStats) {
	if _, ended := event.(*stats.ConnEnd); ended {
		callerOf(ctx).answers.Close()
	}
}

// TagRPC implements stats.Handler.
func (callers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler. A call without a trailer was reset before its answer was handed
// on, and grpc may then forget the answer without a word.
func (callers) HandleRPC(ctx context.Context, event stats.RPCStats) {
	a, ok := ctx.Value(arrivalKey{}).(*arrival)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.OutTrailer:
		a.trailed = true
	case *stats.End:
		if a.answer != nil && !a.trailed {
			a.answer.end()
		}
	}
}
