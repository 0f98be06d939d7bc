package rpc

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// TestWithinLimits holds the limits on numbers of elements against protovalidate, from below.
func TestWithinLimits(t *testing.T) {
	annotated := &pb.SelectMemoryRequest{
		UserScope: "u", Recall: recallOf(10_000), ConflictKeys: slotsOf(10_000), AuthorityByMemoryId: authoritiesOf(10_000),
	}
	annotated.Recall.Hits[9_999].ScoreBreakdown.MatchedTerms = make([]string, 1000)
	for name, m := range map[string]proto.Message{
		"hits, annotations and terms": annotated,
		"segments":                    &pb.PlanPromptRequest{Segments: segmentsOf(256)},
	} {
		if !agree(t, m) {
			t.Errorf("%s: not valid", name)
		}
	}
}

// TestPastLimits holds them from above: one element more is a fault at the same path.
func TestPastLimits(t *testing.T) {
	terms := recallOf(2)
	terms.Hits[1].ScoreBreakdown.MatchedTerms = make([]string, 1001)
	for _, test := range []struct {
		path    string
		request proto.Message
	}{
		{"candidates", &pb.SelectMemoryRequest{Recall: recallOf(4000), Candidates: candidatesOf(6001)}},
		{"conflict_keys", &pb.SelectMemoryRequest{ConflictKeys: slotsOf(10_001)}},
		{"authority_by_memory_id", &pb.SelectMemoryRequest{AuthorityByMemoryId: authoritiesOf(10_001)}},
		{"recall.hits[1].score_breakdown.matched_terms", &pb.SelectMemoryRequest{Recall: terms}},
		{"segments", &pb.PlanPromptRequest{Segments: segmentsOf(257)}},
		{
			"memory.recall.hits[1].score_breakdown.matched_terms",
			&pb.PlanPromptRequest{Memory: &pb.SelectMemoryRequest{Recall: terms}},
		},
	} {
		agree(t, test.request)
		if got := tooMany(marshal(t, test.request), test.request); got != test.path {
			t.Errorf("too many elements at %q, want %q", got, test.path)
		}
	}
}

func candidatesOf(n int) (list []*pb.MemoryContextCandidate) {
	for i := range n {
		list = append(list, &pb.MemoryContextCandidate{
			MemoryId: fmt.Sprint("c", i), Text: "x", UserScope: "u", Score: new(1.0), SourceRank: 1,
			Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"},
		})
	}
	return list
}

func recallOf(hits int) *pb.RecallResult {
	r := &pb.RecallResult{Query: &pb.RecallQuery{UserScope: "u"}}
	for i := range hits {
		r.Hits = append(r.Hits, &pb.RecallHit{
			MemoryId: fmt.Sprint("h", i), Snippet: "x", Rank: 1, ScoreBreakdown: &pb.ScoreBreakdown{Total: new(1.0)},
			Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"},
		})
	}
	return r
}

func slotsOf(n int) map[string]string {
	slots := make(map[string]string)
	for i := range n {
		slots[fmt.Sprint("h", i)] = "slot"
	}
	return slots
}

func authoritiesOf(n int) map[string]pb.Authority {
	authorities := make(map[string]pb.Authority)
	for i := range n {
		authorities[fmt.Sprint("h", i)] = pb.Authority_AUTHORITY_CURRENT_TURN
	}
	return authorities
}

func segmentsOf(n int) (list []*pb.PromptSegment) {
	for i := range n {
		list = append(list, &pb.PromptSegment{Name: fmt.Sprint("s", i)})
	}
	return list
}
