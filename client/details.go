package client

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// domain marks the refusals of the service, as in google.rpc.ErrorInfo. What carries no such
// ErrorInfo comes from gRPC, or from something between.
const domain = "promptassembly"

const reasonPrefix = "ERROR_REASON_"

// readDetails fills in what the details of the status say.
func (e *Error) readDetails() {
	var request *errdetails.BadRequest
	for _, detail := range e.status.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == domain {
				e.refusal = true
				e.reason = detail.GetReason()
				e.Reason = pb.ErrorReason(pb.ErrorReason_value[reasonPrefix+e.reason])
				e.Metadata = detail.GetMetadata()
			}
		case *errdetails.BadRequest:
			request = detail
		case *errdetails.RetryInfo:
			e.RetryAfter = max(0, detail.GetRetryDelay().AsDuration())
		}
	}
	if !e.refusal {
		return
	}
	for _, v := range request.GetFieldViolations() {
		e.Violations = append(e.Violations, Violation{v.GetField(), v.GetDescription()})
	}
	count, _ := strconv.Atoi(e.Metadata["violation_count"])
	e.ViolationCount = max(count, len(e.Violations))
}

// readTrailer fills in what the server says about a repetition beside the status.
func (e *Error) readTrailer(trailer metadata.MD) {
	e.pushback = trailer.Get("grpc-retry-pushback-ms")
	if after, ok := e.pushedBack(); ok && len(e.pushback) > 0 {
		e.RetryAfter = after
	}
}

// pushedBack returns how long the server asks to wait, 0 if it does not ask. It is false if the
// server wants no repetition, which it says by any value that is no number of milliseconds.
func (e *Error) pushedBack() (time.Duration, bool) {
	if len(e.pushback) == 0 {
		return e.RetryAfter, true
	}
	ms, err := strconv.ParseUint(strings.Join(e.pushback, ","), 10, 31)
	return time.Duration(ms) * time.Millisecond, err == nil
}
