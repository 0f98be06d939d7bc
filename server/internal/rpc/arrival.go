package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/tap"

	"github.com/promptassembly/promptassembly/server/internal/admission"
)

// arrival is a call from when its headers are read.
type arrival struct {
	caller   *caller
	room     admission.Ticket
	full     bool               // there is no room
	arriving *admission.Account // that its message counts for while it is late
	cancel   context.CancelFunc
	// begin returns false if the call ended before anybody answered it; its room is given back then. Nil:
	// it has none yet.
	begin   func() bool
	most    int64         // bytes of a request
	answer  *written      // nil: none, or a small one
	trailed bool          // the trailer follows the answer
	timeout time.Duration // for a message
}

type arrivalKey struct{}

func arrivalOf(ctx context.Context) *arrival { return ctx.Value(arrivalKey{}).(*arrival) }

// arrive takes room for a call, bounds its time and lets it be cancelled. It runs on the goroutine
// that reads the connection: were room taken only when a call's turn comes, those that wait for their
// turn would not count. A call without room is refused in its turn, with all that belongs to it. On a
// connection that nobody was identified on, a call takes room once its caller is: or those without an
// identity could keep out the others.
// Health checks and reflection take no room, so that they are answered under overload, and a health
// watch lasts.
func (s *Service) arrive(ctx context.Context, info *tap.Info) (context.Context, error) {
	caller := callerOf(ctx)
	a := &arrival{caller: caller, arriving: caller.arriving, most: int64(s.messageBytes), timeout: s.callTimeout}
	ctx = context.WithValue(ctx, arrivalKey{}, a)
	if info.FullMethodName == healthpb.Health_Watch_FullMethodName {
		ctx, a.cancel = context.WithCancel(ctx)
		return ctx, nil
	}
	ctx, a.cancel = context.WithTimeout(ctx, s.callTimeout)
	if s.methods[info.FullMethodName] && (s.access == nil || caller.identified.Load()) {
		var admitted bool
		a.room, admitted = caller.inFlight.Admit(caller.expected.Load())
		a.full = !admitted
		a.begin = context.AfterFunc(ctx, a.room.Release)
	}
	return ctx, nil
}

// belong makes the call count for the identity whose account it is, and reports whether that has room.
func (a *arrival) belong(to *account) (admitted bool) {
	a.arriving = to.arriving
	if a.begin != nil {
		return a.room.MoveTo(to.inFlight)
	}
	a.room, admitted = to.inFlight.Admit(a.caller.expected.Load())
	return admitted
}

// receive receives a message. What arrives slowly is charged for; if there is no room, the call is
// cancelled, which with a trailer is all that grpc lets its caller know.
func (a *arrival) receive(ctx context.Context, receive func() error) error {
	w := &wait{arrival: a, ctx: ctx}
	w.mu.Lock()
	w.timer = time.AfterFunc(slowness[0].after, w.next)
	w.mu.Unlock()
	err := receive()
	w.end()
	return err
}

// slowness is how much a request that is still arriving counts, by the time since it was waited for.
// How much of it is there, and how large it will be, grpc does not tell: the bytes are what may have
// come by then, and in the end the most there can be.
var slowness = []struct {
	after time.Duration
	bytes int64
}{
	{20 * time.Millisecond, 256 << 10},
	{250 * time.Millisecond, 4 << 20},
	{time.Second, MaxMessageBytes},
}

// wait is the wait for one message.
type wait struct {
	arrival *arrival
	ctx     context.Context
	mu      sync.Mutex // guards the arrival's room, too, for as long as the message is waited for
	timer   *time.Timer
	step    int
	slow    admission.Ticket
	over    bool
}

// next is what happens while a message does not come. A call that waits for it makes no work, and gives
// back its room among those that do.
func (w *wait) next() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.step == len(slowness) {
		w.arrival.cancel()
		return
	}
	w.arrival.room.Release()
	now := slowness[w.step]
	if !w.charge(min(now.bytes, w.arrival.most)) {
		w.slow.Release() // others of the same age may need it
		_ = grpc.SetTrailer(w.ctx, retryPushback)
		w.arrival.cancel()
		return
	}
	pause := w.arrival.timeout
	if w.step++; w.step < len(slowness) {
		pause = slowness[w.step].after - now.after
	}
	w.timer.Reset(pause)
}

// charge makes the message count n bytes, and reports whether there is room for them.
func (w *wait) charge(n int64) (admitted bool) {
	if w.step > 0 {
		return w.slow.Resize(n)
	}
	w.slow, admitted = w.arrival.arriving.Admit(n)
	return admitted
}

func (w *wait) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	w.slow.Release()
}
