package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// Error is what every call of a Client fails with: a refusal by the service, or what kept the call
// from being answered.
type Error struct {
	Code codes.Code
	// Reason is why the service refused the call. UNSPECIFIED: it gave no reason, or one that this
	// client does not know.
	Reason pb.ErrorReason
	// Metadata is what the service says beside the reason, as pb.ErrorReason describes it. Nil where
	// it says nothing.
	Metadata map[string]string
	// Violations are the faulty paths of a request that is refused with INVALID_REQUEST, in the order
	// of its fields; only as many as fit into the answer.
	Violations []Violation
	// ViolationCount is the number of all faulty paths.
	ViolationCount int
	// RetryAfter is how long the service asks to wait before the call is repeated. 0: it does not ask.
	RetryAfter time.Duration
	// Attempts is how many times the call was made.
	Attempts int

	status   *status.Status
	cause    error    // of the context package, or nil
	refusal  bool     // by the service itself
	reason   string   // the name that the service gave
	sent     bool     // a server was found to ask
	pushback []string // the trailer grpc-retry-pushback-ms
}

// Violation is one faulty path of a request.
type Violation struct {
	Path        string // proto field names from the request's root, such as candidates[3].score
	Description string // what must be there
}

// maxPaths is how many faulty paths the text of an Error names.
const maxPaths = 3

// Error returns code, reason, message and the first faulty paths. It holds no text of a memory or a
// segment.
func (e *Error) Error() string {
	var out strings.Builder
	out.WriteString(code.Code(e.Code).String())
	if name := e.ReasonName(); name != "" {
		fmt.Fprintf(&out, " (%s)", name)
	}
	fmt.Fprintf(&out, ": %s", e.GRPCStatus().Message())
	listed := e.Violations[:min(maxPaths, len(e.Violations))]
	for i, v := range listed {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		out.WriteString(separator + v.Path)
	}
	if more := e.ViolationCount - len(listed); more > 0 && len(listed) > 0 {
		fmt.Fprintf(&out, " and %d more", more)
	}
	return out.String()
}

// ReasonName returns the name of the reason as the service gives it, such as INVALID_REQUEST, also one
// that this client does not know. Empty: the failure is none of the service's own, but came from the
// connection or from something between.
func (e *Error) ReasonName() string {
	if e.reason == "" && e.Reason != pb.ErrorReason_ERROR_REASON_UNSPECIFIED { // an Error that a test has made
		return strings.TrimPrefix(e.Reason.String(), reasonPrefix)
	}
	return e.reason
}

// GRPCStatus returns the status that the last attempt ended with, for status.FromError.
func (e *Error) GRPCStatus() *status.Status {
	if e.status == nil { // an Error that a test has made
		return status.New(e.Code, "")
	}
	return e.status
}

// Unwrap returns context.DeadlineExceeded for DEADLINE_EXCEEDED, whose time it ever was that passed,
// context.Canceled if the caller cancelled the call, else nil.
func (e *Error) Unwrap() error { return e.cause }

// ErrorOf returns the account of a status that did not come from a Client. Attempts is 0.
func ErrorOf(st *status.Status) *Error {
	e := &Error{Code: st.Code(), status: st}
	if e.Code == codes.DeadlineExceeded {
		e.cause = context.DeadlineExceeded
	}
	e.readDetails()
	return e
}

// newError returns the account of err, with which an attempt has ended. ctx is that of the call.
func newError(ctx context.Context, err error) *Error {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	e := ErrorOf(st)
	if e.Code == codes.Canceled && ctx.Err() != nil {
		e.cause = context.Canceled
	}
	return e
}
