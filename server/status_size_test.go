package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

const maxStatusBytes = 4096

// Of 5,000 faults the first are listed, and one more would not fit.
func TestStatusIsFullOfViolations(t *testing.T) {
	request := &pb.SelectMemoryRequest{UserScope: "u"}
	for i := range 5000 {
		c := candidate(strconv.Itoa(i), "x")
		c.SourceRank = 0
		request.Candidates = append(request.Candidates, c)
	}
	_, err := pb.NewPromptAssemblyServiceClient(start(t)).SelectMemory(t.Context(), request)
	info, violations := refusalOf(err)
	if got := info.GetMetadata()["violation_count"]; got != "5000" {
		t.Errorf("violation_count %q, want 5000", got)
	}
	if len(violations) == 0 {
		t.Fatalf("no violations in %v", err)
	}
	for i, violation := range violations {
		if want := fmt.Sprintf("candidates[%d].source_rank", i); violation.GetField() != want {
			t.Fatalf("violation %d is at %s, want %s", i, violation.GetField(), want)
		}
	}
	next := &errdetails.BadRequest_FieldViolation{
		Field:       fmt.Sprintf("candidates[%d].source_rank", len(violations)),
		Description: violations[0].GetDescription(),
	}
	checkFull(t, err, info, &errdetails.BadRequest{FieldViolations: append(violations, next)})
}

// Of 256 required segments with names of 256 bytes the first are named, and one more would not fit.
func TestStatusIsFullOfSegments(t *testing.T) {
	request := &pb.PlanPromptRequest{MaxChars: &pb.Budget{Bound: &pb.Budget_Limit{Limit: 255*7 + 255}}}
	var names []string
	for i := range 256 {
		name := fmt.Sprintf("%03d", i) + strings.Repeat("x", 253)
		names = append(names, name)
		request.Segments = append(request.Segments, &pb.PromptSegment{
			Name: name, Required: new(true), Body: &pb.PromptSegment_Text{Text: "x"},
		})
	}
	_, err := pb.NewPromptAssemblyServiceClient(start(t)).PlanPrompt(t.Context(), request)
	if status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("got %v", err)
	}
	info, _ := refusalOf(err)
	metadata := info.GetMetadata()
	if metadata["segment_count"] != "256" || metadata["needed"] != strconv.Itoa(255*7+256) {
		t.Errorf("metadata %v", metadata)
	}
	named := strings.Split(metadata["segments"], ",")
	if want := strings.Join(names[:len(named)], ","); metadata["segments"] != want {
		t.Errorf("segments %q, want %q", metadata["segments"], want)
	}
	more := proto.CloneOf(info)
	more.Metadata["segments"] += "," + names[len(named)]
	checkFull(t, err, more)
}

// checkFull checks that the status is within its size, and would not be with these details.
func checkFull(t *testing.T, err error, details ...proto.Message) {
	t.Helper()
	s := status.Convert(err).Proto()
	if size := proto.Size(s); size > maxStatusBytes {
		t.Errorf("the status takes %d bytes, want at most %d", size, maxStatusBytes)
	}
	more := &statuspb.Status{Code: s.GetCode(), Message: s.GetMessage()}
	for _, detail := range details {
		packed, err := anypb.New(detail)
		if err != nil {
			t.Fatal(err)
		}
		more.Details = append(more.Details, packed)
	}
	if size := proto.Size(more); size <= maxStatusBytes {
		t.Errorf("one more would take %d bytes, which would fit", size)
	}
}
