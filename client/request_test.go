package client_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

func TestSelectRequest(t *testing.T) {
	got := client.SelectRequest("mine", []client.Memory{
		{ID: "m1", Text: "one", SourceID: "s1", SourceType: "note"},
		{
			ID: "m2", Text: "two", Score: 0.5, Rank: 7, Scope: "theirs", SourceID: "s2", SourceType: "note", Title: "Notes",
			CapturedAt:  time.Date(2026, 8, 17, 9, 0, 0, 5, time.FixedZone("CEST", 7200)),
			ConflictKey: "slot", Authority: pb.Authority_AUTHORITY_CURRENT_TURN,
		},
		{ID: "m3", Text: "three", Score: 1},
	})
	want := &pb.SelectMemoryRequest{UserScope: "mine", Candidates: []*pb.MemoryContextCandidate{
		{
			MemoryId: "m1", Text: "one", UserScope: "mine", Score: new(0.0), SourceRank: 1,
			Provenance: &pb.Provenance{SourceId: "s1", SourceType: "note"},
		},
		{
			MemoryId: "m2", Text: "two", UserScope: "theirs", Score: new(0.5), SourceRank: 7,
			Provenance: &pb.Provenance{
				SourceId: "s2", SourceType: "note", Title: "Notes",
				CapturedAt: &timestamppb.Timestamp{Seconds: 1786950000, Nanos: 5},
			},
			ConflictKey: "slot", Authority: pb.Authority_AUTHORITY_CURRENT_TURN,
		},
		{MemoryId: "m3", Text: "three", UserScope: "mine", Score: new(1.0), SourceRank: 3, Provenance: &pb.Provenance{}},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestSegmentsAndBudgets(t *testing.T) {
	got := &pb.PlanPromptRequest{
		Segments:  []*pb.PromptSegment{client.Segment(pb.SegmentKind_SEGMENT_KIND_IDENTITY, "You are Ada.")},
		MaxChars:  client.Limit(0),
		MaxTokens: client.Unlimited(),
	}
	want := &pb.PlanPromptRequest{
		Segments: []*pb.PromptSegment{{
			Kind: pb.SegmentKind_SEGMENT_KIND_IDENTITY, Body: &pb.PromptSegment_Text{Text: "You are Ada."},
		}},
		MaxChars:  &pb.Budget{Bound: &pb.Budget_Limit{}},
		MaxTokens: &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
