package rpc

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

func TestCountedFieldNumbers(t *testing.T) {
	for _, test := range []struct {
		number  protowire.Number
		message proto.Message
		field   string
	}{
		{planSegments, new(pb.PlanPromptRequest), "segments"},
		{planMemory, new(pb.PlanPromptRequest), "memory"},
		{selectRecall, new(pb.SelectMemoryRequest), "recall"},
		{selectConflictKeys, new(pb.SelectMemoryRequest), "conflict_keys"},
		{selectAuthorities, new(pb.SelectMemoryRequest), "authority_by_memory_id"},
		{selectCandidates, new(pb.SelectMemoryRequest), "candidates"},
		{recallHits, new(pb.RecallResult), "hits"},
		{hitScoreBreakdown, new(pb.RecallHit), "score_breakdown"},
		{scoreMatchedTerms, new(pb.ScoreBreakdown), "matched_terms"},
	} {
		message := test.message.ProtoReflect().Descriptor()
		field := message.Fields().ByNumber(test.number)
		if field == nil || string(field.Name()) != test.field {
			t.Errorf("field %d of %s is %v, want %s", test.number, message.Name(), field, test.field)
		}
	}
}

// Wire types other than those of a field are unknown fields, and a message may come in parts.
func TestCountsWhatDecodingWouldMerge(t *testing.T) {
	var (
		segment    = record(planSegments, nil)
		candidate  = record(selectCandidates, nil)
		hit        = record(selectRecall, record(recallHits, nil))
		slot       = record(selectConflictKeys, nil)
		terms      = bytes.Repeat(record(scoreMatchedTerms, nil), 600)
		halfScore  = record(hitScoreBreakdown, terms)
		halfMemory = record(planMemory, bytes.Repeat(candidate, 6000))
		unknown    = protowire.AppendVarint(protowire.AppendTag(nil, selectCandidates, protowire.VarintType), 1)
		group      = protowire.AppendTag(protowire.AppendTag(nil, selectCandidates, protowire.StartGroupType),
			selectCandidates, protowire.EndGroupType)
	)
	const selectMemory, planPrompt = false, true
	for _, test := range []struct {
		name string
		wire []byte
		plan bool
		want string
	}{
		{"nothing", nil, selectMemory, ""},
		{"a hit that is one too many, before the candidates", join(hit, times(10_000, candidate)), selectMemory, "candidates"},
		{"hits in as many recalls, after the candidates", join(times(5000, candidate), times(5001, hit)), selectMemory, "candidates"},
		{"hits alone", times(10_001, hit), selectMemory, "candidates"},
		{"as many as may be", join(times(5000, candidate), times(5000, hit)), selectMemory, ""},
		{"the lower field number answers", join(times(10_001, candidate), times(10_001, slot)), selectMemory, "conflict_keys"},
		{
			"half a score twice in one hit",
			join(hit, record(selectRecall, record(recallHits, join(halfScore, halfScore)))),
			selectMemory, "recall.hits[1].score_breakdown.matched_terms",
		},
		{
			"the first of two hits answers",
			join(hit, times(2, record(selectRecall, record(recallHits, join(halfScore, halfScore))))),
			selectMemory, "recall.hits[1].score_breakdown.matched_terms",
		},
		{
			"half a score in each of two hits",
			join(times(2, record(selectRecall, record(recallHits, halfScore)))), selectMemory, "",
		},
		{"half a memory twice", join(halfMemory, halfMemory), planPrompt, "memory.candidates"},
		{"segments after too many memories", join(halfMemory, halfMemory, times(257, segment)), planPrompt, "segments"},
		{"as many segments as may be", times(256, segment), planPrompt, ""},
		{"another wire type", times(10_001, unknown), selectMemory, ""},
		{"groups", times(10_001, group), selectMemory, ""},
		{"too many before the truncation", join(times(10_001, candidate), []byte{0x32}), selectMemory, "candidates"},
		{"truncated before", join([]byte{0x32, 0x05}, times(2, candidate)), selectMemory, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m proto.Message = new(pb.SelectMemoryRequest)
			if test.plan {
				m = new(pb.PlanPromptRequest)
			}
			if got := tooMany(test.wire, m); got != test.want {
				t.Errorf("too many elements at %q, want %q", got, test.want)
			}
		})
	}
}

func TestCountsTruncatedRequests(t *testing.T) {
	whole := marshal(t, &pb.PlanPromptRequest{Memory: &pb.SelectMemoryRequest{
		UserScope: "u", Recall: recallOf(3), ConflictKeys: slotsOf(3), Candidates: candidatesOf(3),
	}})
	for n := range whole {
		for _, m := range []proto.Message{new(pb.PlanPromptRequest), new(pb.SelectMemoryRequest)} {
			if got := tooMany(whole[:n], m); got != "" {
				t.Errorf("too many elements at %q in the first %d bytes", got, n)
			}
		}
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	memory := &pb.SelectMemoryRequest{
		UserScope: "u", Recall: recallOf(100), ConflictKeys: slotsOf(100), Candidates: candidatesOf(100),
	}
	for _, m := range []proto.Message{memory, &pb.PlanPromptRequest{Segments: segmentsOf(100), Memory: memory}} {
		wire := marshal(t, m)
		if n := testing.AllocsPerRun(100, func() { tooMany(wire, m) }); n > 0 {
			t.Errorf("%v allocations in %T, want none", n, m)
		}
	}
}

// FuzzTooMany counts on the wire what decoding finds.
func FuzzTooMany(f *testing.F) {
	recall := &pb.SelectMemoryRequest{Recall: recallOf(2), ConflictKeys: slotsOf(2), AuthorityByMemoryId: authoritiesOf(2)}
	recall.Recall.Hits[1].ScoreBreakdown.MatchedTerms = []string{"a", "b"}
	f.Add(marshal(f, recall), []byte(nil), uint16(0))
	f.Add([]byte(nil), record(selectCandidates, nil), uint16(10_001))
	f.Add(marshal(f, &pb.PlanPromptRequest{Memory: recall}), record(planSegments, nil), uint16(257))
	f.Add([]byte{0x1a, 0x08, 0x12, 0x06, 0x32, 0x04}, record(scoreMatchedTerms, nil), uint16(2))
	f.Fuzz(func(t *testing.T, wire, repeated []byte, n uint16) {
		if len(repeated) > 64 {
			n %= 64
		}
		wire = join(wire, times(int(n), repeated))

		plan := new(pb.PlanPromptRequest)
		got := tooMany(wire, plan)
		if proto.Unmarshal(wire, plan) == nil && !repeatsKeys(wire, plan) {
			if want := tooManyDecoded(plan, plan.GetMemory(), "memory."); got != want {
				t.Errorf("PlanPrompt: too many elements at %q, want %q", got, want)
			}
		}

		memory := new(pb.SelectMemoryRequest)
		got = tooMany(wire, memory)
		counted := count(wire, memory)
		if proto.Unmarshal(wire, memory) == nil && !repeatsKeys(wire, memory) {
			if want := tooManyDecoded(nil, memory, ""); got != want {
				t.Errorf("SelectMemory: too many elements at %q, want %q", got, want)
			}
			counted.termsOf = 0 // whose path has been compared
			want := elements{
				hits:         len(memory.GetRecall().GetHits()),
				conflictKeys: len(memory.GetConflictKeys()),
				authorities:  len(memory.GetAuthorityByMemoryId()),
				candidates:   len(memory.GetCandidates()),
			}
			for _, hit := range memory.GetRecall().GetHits() {
				want.terms += len(hit.GetScoreBreakdown().GetMatchedTerms())
			}
			if counted != want {
				t.Errorf("counted %+v, want %+v", counted, want)
			}
		}
	})
}

// repeatsKeys reports whether encoding the decoded message again takes away map entries.
func repeatsKeys(wire []byte, m proto.Message) bool {
	entries := func(b []byte) int {
		e := count(b, m)
		return e.conflictKeys + e.authorities
	}
	again, err := proto.Marshal(m)
	return err != nil || entries(again) < entries(wire)
}

// tooMany counts, and returns the first path with too many elements.
func tooMany(b []byte, m proto.Message) string {
	e := count(b, m)
	return e.tooMany()
}

// tooManyDecoded is tooMany on what has been decoded.
func tooManyDecoded(plan *pb.PlanPromptRequest, m *pb.SelectMemoryRequest, at string) string {
	if len(plan.GetSegments()) > 256 {
		return "segments"
	}
	hits := m.GetRecall().GetHits()
	for i, hit := range hits {
		if len(hit.GetScoreBreakdown().GetMatchedTerms()) > 1000 {
			return fmt.Sprintf("%srecall.hits[%d].score_breakdown.matched_terms", at, i)
		}
	}
	switch {
	case len(m.GetConflictKeys()) > 10_000:
		return at + "conflict_keys"
	case len(m.GetAuthorityByMemoryId()) > 10_000:
		return at + "authority_by_memory_id"
	case len(hits)+len(m.GetCandidates()) > 10_000:
		return at + "candidates"
	}
	return ""
}

// record encodes a length-delimited field.
func record(field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), value)
}

func times(n int, record []byte) []byte { return bytes.Repeat(record, n) }

func join(records ...[]byte) []byte { return bytes.Join(records, nil) }
