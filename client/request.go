package client

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// Memory is a memory that may enter a prompt, as a retriever hands it over. The comments of
// pb.MemoryContextCandidate give the rules for each field; the server checks them.
type Memory struct {
	ID    string
	Text  string
	Score float64 // 0 to 1, higher is better
	Rank  uint32  // the retriever's, 1 is best; 0: the place in the list
	Scope string  // who owns it; empty: the scope of the request

	SourceID   string    // where it came from; required
	SourceType string    // required
	Title      string    // of the source; may be empty
	CapturedAt time.Time // zero: not known

	ConflictKey string       // the slot of the fact that it states; empty: none
	Authority   pb.Authority // unspecified: the user's default
}

// SelectRequest returns a request that selects from memories for a scope, with the default policy.
func SelectRequest(scope string, memories []Memory) *pb.SelectMemoryRequest {
	req := &pb.SelectMemoryRequest{UserScope: scope}
	for i, m := range memories {
		candidate := &pb.MemoryContextCandidate{
			MemoryId:    m.ID,
			Text:        m.Text,
			UserScope:   m.Scope,
			Score:       new(m.Score),
			SourceRank:  m.Rank,
			Provenance:  &pb.Provenance{SourceId: m.SourceID, SourceType: m.SourceType, Title: m.Title},
			ConflictKey: m.ConflictKey,
			Authority:   m.Authority,
		}
		if m.Scope == "" {
			candidate.UserScope = scope
		}
		if m.Rank == 0 {
			candidate.SourceRank = uint32(i) + 1
		}
		if !m.CapturedAt.IsZero() {
			candidate.Provenance.CapturedAt = timestamppb.New(m.CapturedAt)
		}
		req.Candidates = append(req.Candidates, candidate)
	}
	return req
}

// Segment returns a segment of a prompt, with the name, the priorities and whether it is required
// that are the defaults of its kind. A custom one has to be named.
func Segment(kind pb.SegmentKind, text string) *pb.PromptSegment {
	return &pb.PromptSegment{Kind: kind, Body: &pb.PromptSegment_Text{Text: text}}
}

// Limit returns a budget of n characters or tokens; 0 lets nothing in.
func Limit(n uint32) *pb.Budget {
	return &pb.Budget{Bound: &pb.Budget_Limit{Limit: n}}
}

// Unlimited returns a budget without a bound.
func Unlimited() *pb.Budget {
	return &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}}
}
