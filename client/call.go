package client

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
)

// call makes one call of a method of the generated client.
func call[Req proto.Message, Resp any](
	ctx context.Context, c *Client, method func(context.Context, Req, ...grpc.CallOption) (Resp, error),
	req Req, opts []grpc.CallOption,
) (answer Resp, err error) {
	err = c.repeat(ctx, proto.Size(req), func(ctx context.Context, own ...grpc.CallOption) (err error) {
		answer, err = method(ctx, req, append(own, opts...)...)
		return err
	})
	return answer, err
}

// try sends a request once.
type try func(context.Context, ...grpc.CallOption) error

// slowBytes is the size of a request for which an attempt may take twice as long as for a small one.
const slowBytes = 16 << 20

// repeat makes attempts until one is answered or fails for good, or until there may be no more.
func (c *Client) repeat(ctx context.Context, size int, try try) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.timeout)
	defer cancel()
	limit := min(c.options.attemptTimeout, c.options.timeout)
	limit += time.Duration(float64(limit) * float64(size) / slowBytes)
	deadline, _ := ctx.Deadline()
	if c.servers.several.Load() {
		limit = min(limit, time.Until(deadline)/2)
	}
	r := &route{servers: c.servers}

	sent, counted := 0, 1 // attempts: sent, and counted with the one to come
	for pauses := 1; ; pauses++ {
		failure := c.attempt(ctx, try, r, limit, counted == c.options.attempts)
		if failure == nil {
			c.servers.answered(r.last)
			c.budget.answered()
			return nil
		}
		failure.Attempts = sent + 1
		if ctx.Err() != nil || !failure.transient() {
			return failure
		}
		if failure.late() && failure.sent {
			c.servers.suspect(r.last)
			limit *= 2
		}
		pause, again := failure.pause(pauses)
		if !again || time.Until(deadline) <= pause {
			return failure
		}
		onlyWaited := failure.late() && !failure.sent && !c.options.failFast
		if !onlyWaited {
			sent++
		}
		if !onlyWaited && (!failure.overloaded() || c.options.attempts == 1) { // both cost a server nothing
			if counted == c.options.attempts || !c.budget.take() {
				return failure
			}
			counted++
		}
		r.failed = append(r.failed, r.last)
		if c.options.sleep(ctx, pause); ctx.Err() != nil {
			ended := newError(ctx, ctx.Err())
			ended.Attempts = failure.Attempts
			return ended
		}
	}
}

// attempt asks one server, for as long as the limit or, the last time, as the call may take.
func (c *Client) attempt(ctx context.Context, try try, r *route, limit time.Duration, last bool) *Error {
	attempt, cancel := ctx, context.CancelFunc(func() {})
	if !last {
		attempt, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	r.last = ""
	var server peer.Peer
	var trailer metadata.MD
	err := try(withRoute(attempt, r),
		grpc.WaitForReady(!c.options.failFast),
		grpc.MaxCallRecvMsgSize(c.options.maxReceive),
		grpc.MaxCallSendMsgSize(c.options.maxSend),
		grpc.Peer(&server),
		grpc.Trailer(&trailer))
	if err == nil {
		return nil
	}
	failure := newError(ctx, err)
	failure.sent = server.Addr != nil
	failure.readTrailer(trailer)
	return failure
}
