package rpc

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// role is what a field of a request is to who may send it.
type role string

const (
	// claim: it says for whom the caller speaks, or raises what the request holds. Authorization looks at it.
	claim role = "claim"
	// data: it is decided on, and gives the caller nothing that it did not have.
	data role = "data"
	// neutral: it changes how the answer is computed or named, for the caller alone.
	neutral role = "neutral"
	// inside: a message whose fields stand here themselves.
	inside role = "inside"
)

// roles is every field of every request, recursively, by the message that has it.
var roles = map[protoreflect.FullName]role{
	"promptassembly.v1.SelectMemoryRequest.query_id":               neutral,
	"promptassembly.v1.SelectMemoryRequest.user_scope":             claim,
	"promptassembly.v1.SelectMemoryRequest.recall":                 inside,
	"promptassembly.v1.SelectMemoryRequest.conflict_keys":          data,
	"promptassembly.v1.SelectMemoryRequest.authority_by_memory_id": claim,
	"promptassembly.v1.SelectMemoryRequest.candidates":             inside,
	"promptassembly.v1.SelectMemoryRequest.policy":                 inside,
	"promptassembly.v1.SelectMemoryRequest.tokenizer":              neutral,
	"promptassembly.v1.SelectMemoryRequest.grant":                  claim,

	"promptassembly.v1.RecallResult.query":             inside,
	"promptassembly.v1.RecallResult.hits":              inside,
	"promptassembly.v1.RecallResult.searched_records":  neutral,
	"promptassembly.v1.RecallResult.candidate_records": neutral,
	"promptassembly.v1.RecallResult.empty_reason":      neutral,

	"promptassembly.v1.RecallQuery.query_id":   neutral,
	"promptassembly.v1.RecallQuery.text":       neutral,
	"promptassembly.v1.RecallQuery.user_scope": data, // of the hits that name none: the scope gate decides

	"promptassembly.v1.RecallHit.memory_id":       data,
	"promptassembly.v1.RecallHit.rank":            data,
	"promptassembly.v1.RecallHit.snippet":         data,
	"promptassembly.v1.RecallHit.user_scope":      data,
	"promptassembly.v1.RecallHit.provenance":      inside,
	"promptassembly.v1.RecallHit.score_breakdown": inside,

	"promptassembly.v1.ScoreBreakdown.total":                data,
	"promptassembly.v1.ScoreBreakdown.lexical_coverage":     neutral,
	"promptassembly.v1.ScoreBreakdown.recency":              neutral,
	"promptassembly.v1.ScoreBreakdown.lexical_contribution": neutral,
	"promptassembly.v1.ScoreBreakdown.recency_contribution": neutral,
	"promptassembly.v1.ScoreBreakdown.matched_terms":        neutral,
	"promptassembly.v1.ScoreBreakdown.query_term_count":     neutral,

	"promptassembly.v1.Provenance.source_id":   data,
	"promptassembly.v1.Provenance.source_type": data,
	"promptassembly.v1.Provenance.title":       data,
	"promptassembly.v1.Provenance.captured_at": data,

	"promptassembly.v1.MemoryContextCandidate.memory_id":    data,
	"promptassembly.v1.MemoryContextCandidate.text":         data,
	"promptassembly.v1.MemoryContextCandidate.user_scope":   data,
	"promptassembly.v1.MemoryContextCandidate.score":        data,
	"promptassembly.v1.MemoryContextCandidate.source_rank":  data,
	"promptassembly.v1.MemoryContextCandidate.provenance":   inside,
	"promptassembly.v1.MemoryContextCandidate.conflict_key": data,
	"promptassembly.v1.MemoryContextCandidate.authority":    claim,

	"promptassembly.v1.MemorySelectionPolicy.min_score":       claim,
	"promptassembly.v1.MemorySelectionPolicy.top_k":           claim,
	"promptassembly.v1.MemorySelectionPolicy.max_chars":       claim,
	"promptassembly.v1.MemorySelectionPolicy.max_tokens":      claim,
	"promptassembly.v1.MemorySelectionPolicy.conflict_winner": neutral,
	"promptassembly.v1.MemorySelectionPolicy.rendering":       neutral,

	"promptassembly.v1.PlanPromptRequest.query_id":   neutral,
	"promptassembly.v1.PlanPromptRequest.segments":   inside,
	"promptassembly.v1.PlanPromptRequest.memory":     inside,
	"promptassembly.v1.PlanPromptRequest.max_chars":  neutral,
	"promptassembly.v1.PlanPromptRequest.max_tokens": neutral,
	"promptassembly.v1.PlanPromptRequest.tokenizer":  neutral,
	"promptassembly.v1.PlanPromptRequest.grant":      claim,

	"promptassembly.v1.PromptSegment.name":            data,
	"promptassembly.v1.PromptSegment.kind":            claim, // some are required by default, some are demanded
	"promptassembly.v1.PromptSegment.text":            data,
	"promptassembly.v1.PromptSegment.priority":        neutral,
	"promptassembly.v1.PromptSegment.budget_priority": neutral,
	"promptassembly.v1.PromptSegment.required":        claim,
	"promptassembly.v1.PromptSegment.provenance":      data,
}

// Whoever adds a field to a request has to say what it is to authorization.
func TestEveryFieldHasARole(t *testing.T) {
	found := make(map[protoreflect.FullName]bool)
	var walk func(m protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if found[f.FullName()] {
				continue
			}
			found[f.FullName()] = true
			role, known := roles[f.FullName()]
			if !known {
				t.Errorf("%s is neither claim nor data nor neutral", f.FullName())
			}
			if role == inside {
				walk(f.Message())
			}
		}
	}
	for _, m := range []protoreflect.ProtoMessage{
		new(pb.SelectMemoryRequest), new(pb.PlanPromptRequest), new(pb.ListTokenizersRequest),
	} {
		walk(m.ProtoReflect().Descriptor())
	}
	methods := pb.File_promptassembly_v1_services_proto.Services().ByName("PromptAssemblyService").Methods()
	if methods.Len() != 3 {
		t.Errorf("%d methods, of which 3 are looked at here", methods.Len())
	}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		if !found[name] {
			t.Errorf("%s is no field of a request", name)
		}
	}
}
