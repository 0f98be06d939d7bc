package rpc

import (
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// selectMemory adds the faults of a request at that path: depth first, fields by number.
func (f *faults) selectMemory(at *path, m *pb.SelectMemoryRequest) {
	ids := make(map[string]struct{}, len(m.GetRecall().GetHits())+len(m.GetCandidates()))

	f.check(at.field("query_id"), optionalIdentifier(m.GetQueryId()))
	if m.GetUserScope() != "" || len(m.GetGrant()) == 0 {
		f.check(at.field("user_scope"), identifier(m.GetUserScope()))
	}
	f.recall(at.field("recall"), m.GetRecall(), ids)
	checkAnnotations(f, at.field("conflict_keys"), m.GetConflictKeys(), ids, optionalIdentifier)
	checkAnnotations(f, at.field("authority_by_memory_id"), m.GetAuthorityByMemoryId(), ids, authority)
	candidates := at.field("candidates")
	for i, c := range m.GetCandidates() {
		f.candidate(candidates.at(i), c, ids)
	}
	f.policy(at.field("policy"), m.GetPolicy())
	f.check(at.field("grant"), grantOfMemory(at, m))
}

// grantOfMemory returns the rule that the grant of a request at that path breaks, or "".
func grantOfMemory(at *path, m *pb.SelectMemoryRequest) string {
	switch {
	case len(m.GetGrant()) == 0:
		return ""
	case at != nil: // the request is a part of another one
		return grantOfAll
	case m.GetUserScope() != "", m.GetRecall() != nil, len(m.GetConflictKeys()) > 0, len(m.GetAuthorityByMemoryId()) > 0,
		len(m.GetCandidates()) > 0, m.GetPolicy() != nil, m.GetTokenizer() != "":
		return grantAlone
	}
	return ""
}

// recall adds the faults of what a retriever found, and the ids of its hits to those that occurred.
func (f *faults) recall(at *path, r *pb.RecallResult, ids map[string]struct{}) {
	scope := optionalIdentifier(r.GetQuery().GetUserScope())
	if r.GetQuery().GetUserScope() == "" && slices.ContainsFunc(r.GetHits(), withoutScope) {
		scope = scopeOfHits
	}
	f.check(at.field("query").field("user_scope"), scope)

	hits := at.field("hits")
	for i, h := range r.GetHits() {
		at := hits.at(i)
		f.memoryID(at.field("memory_id"), h.GetMemoryId(), ids)
		f.check(at.field("rank"), rank(h.GetRank()))
		f.check(at.field("snippet"), memoryText(h.GetSnippet()))
		f.check(at.field("user_scope"), optionalIdentifier(h.GetUserScope()))
		f.provenance(at.field("provenance"), h.GetProvenance())
		var total *float64
		if h.GetScoreBreakdown() != nil {
			total = h.GetScoreBreakdown().Total
		}
		f.check(at.field("score_breakdown").field("total"), requiredScore(total))
	}
}

func withoutScope(h *pb.RecallHit) bool { return h.GetUserScope() == "" }

func (f *faults) candidate(at *path, c *pb.MemoryContextCandidate, ids map[string]struct{}) {
	f.memoryID(at.field("memory_id"), c.GetMemoryId(), ids)
	f.check(at.field("text"), memoryText(c.GetText()))
	f.check(at.field("user_scope"), identifier(c.GetUserScope()))
	f.check(at.field("score"), requiredScore(c.Score))
	f.check(at.field("source_rank"), rank(c.GetSourceRank()))
	f.provenance(at.field("provenance"), c.GetProvenance())
	f.check(at.field("conflict_key"), optionalIdentifier(c.GetConflictKey()))
	f.check(at.field("authority"), authority(c.GetAuthority()))
}

// memoryID adds the fault of an id, and the id to those that occurred.
func (f *faults) memoryID(at *path, id string, ids map[string]struct{}) {
	rule := identifier(id)
	if _, taken := ids[id]; taken && rule == "" {
		rule = idOccurredBefore
	}
	ids[id] = struct{}{}
	f.check(at, rule)
}

func (f *faults) provenance(at *path, p *pb.Provenance) {
	if p == nil {
		f.check(at, mustBeSet)
		return
	}
	f.check(at.field("source_id"), identifier(p.GetSourceId()))
	f.check(at.field("source_type"), identifier(p.GetSourceType()))
	if p.GetTitle() != "" {
		f.check(at.field("title"), identifierUpTo(p.GetTitle(), maxTitleBytes, titleTooLong))
	}
	f.check(at.field("captured_at"), instant(p.GetCapturedAt()))
}

func instant(t *timestamppb.Timestamp) string {
	if t != nil && !t.IsValid() {
		return timeInRange
	}
	return ""
}

func authority(a pb.Authority) string {
	if _, defined := pb.Authority_name[int32(a)]; !defined {
		return undefinedEnum
	}
	return ""
}

func (f *faults) policy(at *path, p *pb.MemorySelectionPolicy) {
	if p == nil {
		return
	}
	f.check(at.field("min_score"), score(p.GetMinScore()))
	f.budget(at.field("max_chars"), p.GetMaxChars())
	f.budget(at.field("max_tokens"), p.GetMaxTokens())
	if _, defined := pb.ConflictWinner_name[int32(p.GetConflictWinner())]; !defined {
		f.check(at.field("conflict_winner"), undefinedEnum)
	}
	if _, defined := pb.MemoryRendering_name[int32(p.GetRendering())]; !defined {
		f.check(at.field("rendering"), undefinedEnum)
	}
}

// checkAnnotations adds the faults of a map from the ids of hits: one at the map if a key is no
// identifier, and then one for each entry that names no hit or has a bad value, by key.
func checkAnnotations[V any](f *faults, at *path, m map[string]V, hits map[string]struct{}, rule func(V) string) {
	keyRule := ""
	var faulty []string
	for key, value := range m {
		if identifier(key) != "" {
			keyRule = keysAreIdentifiers
		} else if _, ok := hits[key]; !ok || rule(value) != "" {
			faulty = append(faulty, key)
		}
	}
	f.check(at, keyRule)
	slices.Sort(faulty)
	for _, key := range faulty {
		broken := rule(m[key])
		if broken == "" {
			broken = annotationWithoutID
		}
		f.check(at.keyed(key), broken)
	}
}
