package client_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// What the real server refuses, as the client tells it.
func TestRefusals(t *testing.T) {
	_, address := realServer(t)
	c := dial(t, []string{address})

	req := wholeRequest(200, 10)
	for _, candidate := range req.GetCandidates() {
		candidate.Score, candidate.SourceRank = nil, 0
	}
	_, err := c.SelectMemory(t.Context(), req)
	refused := failedWith(t, fmt.Errorf("planning: %w", err), codes.InvalidArgument)
	if refused.Reason != pb.ErrorReason_ERROR_REASON_INVALID_REQUEST || refused.ViolationCount != 400 ||
		refused.Metadata["violation_count"] != "400" || refused.Attempts != 1 || refused.RetryAfter != 0 {
		t.Errorf("got %+v", refused)
	}
	if n := len(refused.Violations); n < 4 || n >= 400 || refused.Violations[1].Path != "candidates[0].source_rank" ||
		refused.Violations[1].Description == "" {
		t.Errorf("got %d violations, the first of them %+v", n, refused.Violations[:min(n, 4)])
	}
	if want := "INVALID_ARGUMENT (INVALID_REQUEST): the request is not valid: " +
		"candidates[0].score, candidates[0].source_rank, candidates[1].score and 397 more"; err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
	if len(status.Convert(err).Details()) != 2 {
		t.Errorf("the status lacks its details: %v", status.Convert(err))
	}

	_, err = c.PlanPrompt(t.Context(), &pb.PlanPromptRequest{
		Segments: []*pb.PromptSegment{client.Segment(pb.SegmentKind_SEGMENT_KIND_WORKING_MODE, "Ask first.")},
		MaxChars: client.Limit(3),
	})
	refused = failedWith(t, err, codes.FailedPrecondition)
	want := map[string]string{"needed": "10", "limit": "3", "unit": "chars", "segments": "mode", "segment_count": "1"}
	if !reflect.DeepEqual(refused.Metadata, want) ||
		refused.Reason != pb.ErrorReason_ERROR_REASON_REQUIRED_SEGMENTS_EXCEED_BUDGET ||
		refused.Violations != nil || refused.ViolationCount != 0 {
		t.Errorf("got %+v", refused)
	}
	if want := "FAILED_PRECONDITION (REQUIRED_SEGMENTS_EXCEED_BUDGET): the required segments alone exceed a budget"; err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
}

// Only the service's own domain is believed.
func TestOtherDomains(t *testing.T) {
	_, address := fakeServer(t, func(context.Context, int) (*pb.ListTokenizersResponse, error) {
		return nil, failure(codes.InvalidArgument, "x",
			&errdetails.ErrorInfo{Reason: "INVALID_REQUEST", Domain: "example.org", Metadata: map[string]string{"violation_count": "7"}},
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "f"}}})
	})
	_, err := list(t.Context(), dial(t, []string{address}))
	if got := failedWith(t, err, codes.InvalidArgument); got.Reason != 0 || got.Metadata != nil ||
		got.Violations != nil || got.ViolationCount != 0 {
		t.Errorf("got %+v", got)
	}
	if want := "INVALID_ARGUMENT: x"; err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
}

func TestRetryAfter(t *testing.T) {
	_, address := fakeServer(t, func(context.Context, int) (*pb.ListTokenizersResponse, error) {
		return nil, failure(codes.ResourceExhausted, "busy", reason("OVERLOADED"), retryAfter(1500*time.Millisecond))
	})
	_, err := list(t.Context(), dial(t, []string{address}, client.WithAttempts(1)))
	if got := failedWith(t, err, codes.ResourceExhausted); got.RetryAfter != 1500*time.Millisecond ||
		got.Reason != pb.ErrorReason_ERROR_REASON_OVERLOADED {
		t.Errorf("got %+v", got)
	}
}

// Text that is no UTF-8 cannot be sent, and is not quoted.
func TestTextThatCannotBeSent(t *testing.T) {
	_, address := realServer(t)
	req := client.SelectRequest("u", []client.Memory{{ID: "m", Text: "likes tea\xFF"}})
	_, err := dial(t, []string{address}).SelectMemory(t.Context(), req)
	if got := failedWith(t, err, codes.Internal); got.Attempts != 1 || strings.Contains(err.Error(), "tea") {
		t.Errorf("got %+v", got)
	}
	if errors.Unwrap(errors.Unwrap(err)) != nil {
		t.Errorf("it wraps %v", errors.Unwrap(err))
	}
}

// What the server does not permit is told with whom and what it is about.
func TestNotPermitted(t *testing.T) {
	about := map[string]string{
		"path": "candidates[0].authority", "identity": "spiffe://example.org/agent", "authority": "AUTHORITY_CURRENT_TURN",
	}
	_, address := fakeServer(t, func(context.Context, int) (*pb.ListTokenizersResponse, error) {
		return nil, failure(codes.PermissionDenied, "no",
			&errdetails.ErrorInfo{Reason: "AUTHORITY_NOT_PERMITTED", Domain: "promptassembly", Metadata: about})
	})
	_, err := list(t.Context(), dial(t, []string{address}))
	if got := failedWith(t, err, codes.PermissionDenied); got.Attempts != 1 || !reflect.DeepEqual(got.Metadata, about) ||
		got.Reason != pb.ErrorReason_ERROR_REASON_AUTHORITY_NOT_PERMITTED || got.ReasonName() != "AUTHORITY_NOT_PERMITTED" {
		t.Errorf("got %+v", got)
	}
}

// A reason of a later version keeps its name, and only the service's own has one.
func TestReasonName(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
		text string
	}{
		"known":   {failure(codes.Unauthenticated, "x", reason("IDENTITY_MISSING")), "IDENTITY_MISSING", "UNAUTHENTICATED (IDENTITY_MISSING): x"},
		"later":   {failure(codes.Aborted, "x", reason("OF_A_LATER_VERSION")), "OF_A_LATER_VERSION", "ABORTED (OF_A_LATER_VERSION): x"},
		"another": {failure(codes.Aborted, "x", &errdetails.ErrorInfo{Reason: "R", Domain: "example.org"}), "", "ABORTED: x"},
		"none":    {failure(codes.Aborted, "x"), "", "ABORTED: x"},
	} {
		got := client.ErrorOf(status.Convert(test.err))
		if got.ReasonName() != test.want || got.Error() != test.text || got.Attempts != 0 {
			t.Errorf("%s: %q in %q", name, got.ReasonName(), got)
		}
	}
	made := &client.Error{Reason: pb.ErrorReason_ERROR_REASON_OVERLOADED}
	if got := made.ReasonName(); got != "OVERLOADED" {
		t.Errorf("of one that is made: %q", got)
	}
	if late := client.ErrorOf(status.New(codes.DeadlineExceeded, "x")); !errors.Is(late, context.DeadlineExceeded) {
		t.Errorf("%v is no context.DeadlineExceeded", late)
	}
}

// An Error that a program makes itself, as for its tests, is usable.
func TestMadeError(t *testing.T) {
	made := &client.Error{
		Code: codes.InvalidArgument, Violations: []client.Violation{{Path: "candidates"}}, ViolationCount: 10,
	}
	if status.Code(made) != codes.InvalidArgument {
		t.Errorf("its code is %v", status.Code(made))
	}
	if want := "INVALID_ARGUMENT: : candidates and 9 more"; made.Error() != want {
		t.Errorf("it says %q, want %q", made, want)
	}
}
