package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/tap"

	"github.com/promptassembly/promptassembly/server/internal/admission"
	"github.com/promptassembly/promptassembly/server/internal/observe"
)

const (
	// idleAfter is when a call whose request is still arriving gives back its room among those that
	// are answered: it makes no work.
	idleAfter = 20 * time.Millisecond
	// lateAfter is when such a request is charged for as the largest there can be, as it is held.
	lateAfter = time.Second
)

// arrival is a call from when its headers are read.
type arrival struct {
	caller *caller
	room   admission.Ticket
	full   bool // there is no room
	cancel context.CancelFunc
	// begin returns false if the call ended before anybody answered it; its room is given back then.
	begin   func() bool
	timeout time.Duration
}

type arrivalKey struct{}

func arrivalOf(ctx context.Context) *arrival { return ctx.Value(arrivalKey{}).(*arrival) }

// arrive takes room for a call, bounds its time and lets it be cancelled. It runs on the goroutine
// that reads the connection: were room taken only when a call's turn comes, those that wait for their
// turn would not count. A call without room is refused in its turn, with all that belongs to it.
// Health checks and reflection take no room, so that they are answered under overload, and a health
// watch lasts.
func (s *Service) arrive(ctx context.Context, info *tap.Info) (context.Context, error) {
	a := &arrival{caller: callerOf(ctx), timeout: s.callTimeout}
	ctx = context.WithValue(ctx, arrivalKey{}, a)
	if info.FullMethodName == healthpb.Health_Watch_FullMethodName {
		ctx, a.cancel = context.WithCancel(ctx)
		return ctx, nil
	}
	ctx, a.cancel = context.WithTimeout(ctx, s.callTimeout)
	if s.methods[info.FullMethodName] {
		var admitted bool
		a.room, admitted = a.caller.inFlight.Admit(a.caller.expected.Load())
		a.full = !admitted
		a.begin = context.AfterFunc(ctx, a.room.Release)
	}
	return ctx, nil
}

// receive receives a message. What arrives slowly is charged for; if there is no room, the call is
// cancelled, which is all that grpc lets its caller know.
func (a *arrival) receive(receive func() error) error {
	w := &wait{arrival: a}
	w.mu.Lock()
	w.timer = time.AfterFunc(idleAfter, w.next)
	w.mu.Unlock()
	err := receive()
	w.end()
	return err
}

// wait is the wait for one message.
type wait struct {
	arrival *arrival
	mu      sync.Mutex // guards the arrival's room, too, for as long as the message is waited for
	timer   *time.Timer
	step    int
	late    admission.Ticket
	over    bool
}

// next is what happens while a message does not come.
func (w *wait) next() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.step++
	switch w.step {
	case 1:
		w.arrival.room.Release()
		w.timer.Reset(lateAfter - idleAfter)
	case 2:
		var admitted bool
		if w.late, admitted = w.arrival.caller.arriving.Admit(MaxMessageBytes); !admitted {
			w.arrival.cancel()
		}
		w.timer.Reset(w.arrival.timeout)
	default:
		w.arrival.cancel()
	}
}

func (w *wait) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	w.late.Release()
}

// guard returns the handler of a method that is not the service's own, with what bounds how its
// request arrives.
func guard(handle grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		if compressed(ctx) {
			return nil, errCompressed
		}
		return handle(srv, ctx, func(m any) error {
			return arrivalOf(ctx).receive(func() error { return receive(m) })
		}, interceptor)
	}
}

// guardStream does for streams what guard does.
func guardStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if compressed(stream.Context()) {
		return errCompressed
	}
	return handler(srv, guardedStream{stream})
}

type guardedStream struct{ grpc.ServerStream }

// RecvMsg implements grpc.ServerStream.
func (s guardedStream) RecvMsg(m any) error {
	return arrivalOf(s.Context()).receive(func() error { return s.ServerStream.RecvMsg(m) })
}

// compressed reports whether the request is.
func compressed(ctx context.Context) bool {
	encoding := observe.From(ctx).Compression()
	return encoding != "" && encoding != "identity"
}
