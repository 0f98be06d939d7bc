package client

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// The pause before a repetition is random, up to a bound that doubles from the first to the last of
// these.
const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
)

// serverBug is all that a server says about a bug of its own. Another attempt would meet it again.
const serverBug = "internal error"

// brokenOff begins what gRPC says about an answer that a server, or something between, cut off.
const brokenOff = "stream terminated by RST_STREAM"

// transient reports whether the same call may be answered if it is made again. The context of the
// call has not ended.
func (e *Error) transient() bool {
	if e.overloaded() {
		return true
	}
	if e.refusal {
		switch e.Reason {
		case pb.ErrorReason_ERROR_REASON_AUDIT_UNAVAILABLE, pb.ErrorReason_ERROR_REASON_TOKEN_COUNTER_FAILED:
			return e.Code == codes.Unavailable
		default:
			return false
		}
	}
	message := e.status.Message()
	switch e.Code {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	case codes.Canceled:
		return e.sent // unsent: the client was closed
	case codes.ResourceExhausted: // else the message is too large
		return strings.HasPrefix(message, brokenOff)
	case codes.Internal: // what begins with "grpc: " is about the encoding of messages
		return message != serverBug && !strings.HasPrefix(message, "grpc: ")
	default:
		return false
	}
}

// overloaded reports whether the server had no room for the call. It says when to come back.
func (e *Error) overloaded() bool {
	return e.refusal && e.Code == codes.ResourceExhausted && e.Reason == pb.ErrorReason_ERROR_REASON_OVERLOADED
}

// late reports whether no answer came in the time of the attempt. The context of the call has not
// ended.
func (e *Error) late() bool { return e.Code == codes.DeadlineExceeded }

// pause returns how long to wait the nth time: what the server asks for, and a random time
// more, so that callers who were turned away together do not come back together. It is false if the
// server wants no repetition.
func (e *Error) pause(n int) (time.Duration, bool) {
	after, ok := e.pushedBack()
	after = min(after, time.Hour) // so that the sum does not overflow
	backoff := min(lastBackoff, firstBackoff<<min(n-1, 10))
	return after + rand.N(backoff+min(after/2, lastBackoff)), ok
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
