package rpc

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// wholeSelect has every field of a SelectMemoryRequest and of what is in it.
func wholeSelect() *pb.SelectMemoryRequest {
	provenance := &pb.Provenance{
		SourceId: "s", SourceType: "t", Title: "Ünï", CapturedAt: &timestamppb.Timestamp{Seconds: -62_135_596_800, Nanos: 999_999_999},
	}
	return &pb.SelectMemoryRequest{
		QueryId: "q", UserScope: "u",
		Recall: &pb.RecallResult{
			Query: &pb.RecallQuery{QueryId: "q", Text: "text", UserScope: "u"},
			Hits: []*pb.RecallHit{
				{
					MemoryId: "h1", Rank: 1 << 31, Snippet: strings.Repeat("日本語 ", 100), UserScope: "u", Provenance: provenance,
					ScoreBreakdown: &pb.ScoreBreakdown{
						Total: new(0.5), LexicalCoverage: 0.1, Recency: 0.2, LexicalContribution: 0.3, RecencyContribution: 0.4,
						MatchedTerms: []string{"a", "ä"}, QueryTermCount: 3,
					},
				},
				{},
			},
			SearchedRecords: 5, CandidateRecords: 4, EmptyReason: "none",
		},
		ConflictKeys:        map[string]string{"h1": "slot"},
		AuthorityByMemoryId: map[string]pb.Authority{"h1": pb.Authority_AUTHORITY_CURRENT_TURN},
		Candidates: []*pb.MemoryContextCandidate{
			{
				MemoryId: "c1", Text: "text", UserScope: "u", Score: new(1.0), SourceRank: 300, Provenance: provenance,
				ConflictKey: "slot", Authority: pb.Authority_AUTHORITY_WORKSPACE_OVERRIDE,
			},
			{Authority: -1, Score: new(0.0)},
		},
		Policy: &pb.MemorySelectionPolicy{MinScore: new(0.1), MaxChars: &pb.Budget{Bound: &pb.Budget_Limit{Limit: 7}}},
	}
}

// FuzzUnmarshal holds decoding to the library's: the same bytes are no message, and the others give
// the same message, but for matched terms.
func FuzzUnmarshal(f *testing.F) {
	whole := marshal(f, wholeSelect())
	candidate := record(selectCandidates, marshal(f, wholeSelect().GetCandidates()[0]))
	hit := marshal(f, wholeSelect().GetRecall().GetHits()[0])
	provenance := marshal(f, wholeSelect().GetCandidates()[0].GetProvenance())
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	wideTag := []byte{0x8a, 0x80, 0x00, 0x01, 'x'} // field 1, in a tag of three bytes
	group := protowire.AppendTag(protowire.AppendTag(nil, 9, protowire.StartGroupType), 9, protowire.EndGroupType)
	for _, wire := range [][]byte{
		nil, whole, join(whole, whole), join(candidate, whole, candidate), whole[:len(whole)-1], join(unknown, whole, unknown),
		record(selectCandidates, join(record(6, provenance), record(6, provenance))),
		record(selectCandidates, join(record(6, provenance), unknown)),
		record(selectCandidates, record(6, join(record(4, []byte{8, 1}), record(4, []byte{16, 2})))),
		record(selectCandidates, wideTag), record(selectCandidates, group), record(selectCandidates, []byte{0x0c}),
		record(selectCandidates, []byte("\x0a\x01\xff")),
		record(selectCandidates, []byte{5 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
		record(selectCandidates, []byte{5 << 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02}),
		record(selectCandidates, []byte{0x21, 1, 2, 3, 4, 5, 6, 7}),
		record(selectRecall, join(record(recallHits, hit), record(1, record(3, []byte("u"))))),
		join(record(selectRecall, record(recallHits, join(hit, hit))), whole),
		record(selectRecall, record(recallHits, record(6, bytes.Repeat(record(6, nil), 50)))),
		record(selectRecall, record(recallHits, record(6, record(6, []byte{0xff})))),
		record(planMemory, whole), join(record(planMemory, whole), record(planSegments, record(1, []byte("s"))), record(planMemory, whole)),
	} {
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		before := bytes.Clone(wire)
		for _, pair := range [][2]proto.Message{
			{new(pb.SelectMemoryRequest), new(pb.SelectMemoryRequest)},
			{new(pb.PlanPromptRequest), new(pb.PlanPromptRequest)},
			{new(pb.ListTokenizersRequest), new(pb.ListTokenizersRequest)},
		} {
			got, want := pair[0], pair[1]
			e := count(wire, got)
			gotErr, wantErr := unmarshal(wire, got, &e), proto.Unmarshal(wire, want)
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%T: %v, and the library says %v", got, gotErr, wantErr)
			}
			if wantErr != nil {
				continue
			}
			withoutTerms(want)
			if !proto.Equal(got, want) {
				t.Errorf("decoded %v\nthe library decodes %v", got, want)
			}
		}
		if !bytes.Equal(wire, before) {
			t.Error("decoding changes its input")
		}
	})
}

func withoutTerms(m proto.Message) {
	memory, _ := m.(*pb.SelectMemoryRequest)
	if plan, ok := m.(*pb.PlanPromptRequest); ok {
		memory = plan.GetMemory()
	}
	for _, hit := range memory.GetRecall().GetHits() {
		if hit.ScoreBreakdown != nil {
			hit.ScoreBreakdown.MatchedTerms = nil
		}
	}
}

// What was decoded keeps nothing of the buffer that it was decoded from, which other calls get.
func TestUnmarshalKeepsNothing(t *testing.T) {
	want := wholeSelect()
	withoutTerms(want)
	wire := marshal(t, want)
	got := new(pb.SelectMemoryRequest)
	e := count(wire, got)
	if err := unmarshal(wire, got, &e); err != nil {
		t.Fatal(err)
	}
	for i := range wire {
		wire[i] = 'X'
	}
	if !proto.Equal(got, want) {
		t.Errorf("after the buffer was written to: %v", got)
	}
}

// Messages are allocated in lists, however many there are.
func TestUnmarshalAllocations(t *testing.T) {
	allocations := func(n int) float64 {
		m := &pb.SelectMemoryRequest{UserScope: "u", Recall: recallOf(n), Candidates: candidatesOf(n)}
		wire := marshal(t, m)
		return testing.AllocsPerRun(20, func() {
			e := count(wire, m)
			_ = unmarshal(wire, new(pb.SelectMemoryRequest), &e)
		})
	}
	if few, many := allocations(10), allocations(1000); many > few {
		t.Errorf("%v allocations for 1000 memories, and %v for 10", many, few)
	}
}
