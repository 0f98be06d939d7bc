package rpc

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/prompt"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// This file converts between the messages and the core's types. What it converts has been validated,
// but for segmentKind, which validation uses.

func toMemoryRequest(m *pb.SelectMemoryRequest, counter tokens.Counter) memory.Request {
	return memory.Request{
		Scope:      m.GetUserScope(),
		Candidates: toCandidates(m),
		Policy:     toPolicy(m.GetPolicy()),
		Counter:    counter,
	}
}

// toCandidates returns the adapted hits and the candidates.
func toCandidates(m *pb.SelectMemoryRequest) []memory.Candidate {
	hits := m.GetRecall().GetHits()
	candidates := make([]memory.Candidate, 0, len(hits)+len(m.GetCandidates()))

	recall := memory.Recall{
		Scope:        m.GetRecall().GetQuery().GetUserScope(),
		ConflictKeys: m.GetConflictKeys(),
		Authorities:  make(map[string]memory.Authority, len(m.GetAuthorityByMemoryId())),
	}
	for id, a := range m.GetAuthorityByMemoryId() {
		recall.Authorities[id] = toAuthority(a)
	}
	for _, h := range hits {
		candidates = append(candidates, recall.Candidate(memory.Hit{
			ID:         h.GetMemoryId(),
			Rank:       h.GetRank(),
			Snippet:    h.GetSnippet(),
			Scope:      h.GetUserScope(),
			Provenance: toProvenance(h.GetProvenance()),
			Score:      h.GetScoreBreakdown().GetTotal(),
		}))
	}
	for _, c := range m.GetCandidates() {
		candidates = append(candidates, memory.Candidate{
			ID:          c.GetMemoryId(),
			Text:        c.GetText(),
			Scope:       c.GetUserScope(),
			Score:       c.GetScore(),
			SourceRank:  c.GetSourceRank(),
			Provenance:  toProvenance(c.GetProvenance()),
			ConflictKey: c.GetConflictKey(),
			Authority:   toAuthority(c.GetAuthority()),
		})
	}
	return candidates
}

func toProvenance(p *pb.Provenance) memory.Provenance {
	return memory.Provenance{
		SourceID:   p.GetSourceId(),
		SourceType: p.GetSourceType(),
		Title:      p.GetTitle(),
		CapturedAt: toInstant(p.GetCapturedAt()),
	}
}

func toInstant(t *timestamppb.Timestamp) memory.Instant {
	return memory.Instant{Seconds: t.GetSeconds(), Nanos: t.GetNanos(), Set: t != nil}
}

// toAuthority relies on both enums having the same order; unset is the user's default.
func toAuthority(a pb.Authority) memory.Authority {
	if a == pb.Authority_AUTHORITY_UNSPECIFIED {
		return memory.UserDefault
	}
	return memory.Authority(a - pb.Authority_AUTHORITY_USER_DEFAULT)
}

func fromAuthority(a memory.Authority) pb.Authority {
	return pb.Authority_AUTHORITY_USER_DEFAULT + pb.Authority(a)
}

// toPolicy returns the default policy with what is set in p.
func toPolicy(p *pb.MemorySelectionPolicy) memory.Policy {
	policy := memory.DefaultPolicy()
	if p == nil {
		return policy
	}
	if p.MinScore != nil {
		policy.MinScore = p.GetMinScore()
	}
	if p.TopK != nil {
		policy.TopK = p.GetTopK()
	}
	policy.MaxChars = toBudget(p.GetMaxChars(), policy.MaxChars)
	policy.MaxTokens = toBudget(p.GetMaxTokens(), policy.MaxTokens)
	if p.GetConflictWinner() == pb.ConflictWinner_CONFLICT_WINNER_MOST_RECENT {
		policy.Winner = memory.MostRecent
	}
	if p.GetRendering() == pb.MemoryRendering_MEMORY_RENDERING_COMPACT {
		policy.Rendering = memory.Compact
	}
	return policy
}

func fromPolicy(p memory.Policy) *pb.MemorySelectionPolicy {
	m := &pb.MemorySelectionPolicy{
		MinScore:       &p.MinScore,
		TopK:           &p.TopK,
		MaxChars:       fromBudget(p.MaxChars),
		MaxTokens:      fromBudget(p.MaxTokens),
		ConflictWinner: pb.ConflictWinner_CONFLICT_WINNER_BEST_EVIDENCE,
		Rendering:      pb.MemoryRendering_MEMORY_RENDERING_FULL,
	}
	if p.Winner == memory.MostRecent {
		m.ConflictWinner = pb.ConflictWinner_CONFLICT_WINNER_MOST_RECENT
	}
	if p.Rendering == memory.Compact {
		m.Rendering = pb.MemoryRendering_MEMORY_RENDERING_COMPACT
	}
	return m
}

// toBudget returns the budget that b sets, or unset.
func toBudget(b *pb.Budget, unset budget.Budget) budget.Budget {
	switch bound := b.GetBound().(type) {
	case *pb.Budget_Limit:
		return budget.Of(bound.Limit)
	case *pb.Budget_Unlimited:
		return budget.Unlimited()
	default:
		return unset
	}
}

func fromBudget(b budget.Budget) *pb.Budget {
	if b.Unlimited {
		return &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}}
	}
	return &pb.Budget{Bound: &pb.Budget_Limit{Limit: b.Limit}}
}

func fromMemoryPlan(req *memory.Request, plan *memory.Plan) *pb.MemoryContextPlan {
	m := &pb.MemoryContextPlan{
		Context:           plan.Context,
		UserScope:         req.Scope,
		Policy:            fromPolicy(req.Policy),
		Tokenizer:         req.Counter.Name(),
		CandidateCount:    uint32(len(req.Candidates)),
		UsedChars:         uint32(plan.UsedChars),
		UsedTokens:        uint32(plan.UsedTokens),
		SelectedMemoryIds: plan.Selected,
		RejectedMemoryIds: plan.Rejected,
		Decisions:         make([]*pb.MemoryDecision, len(plan.Decisions)),
	}
	decisions := make([]pb.MemoryDecision, len(plan.Decisions)) // one allocation for all
	for i := range plan.Decisions {
		d, c := &plan.Decisions[i], &req.Candidates[plan.Decisions[i].Candidate]
		to := &decisions[i]
		to.MemoryId = c.ID
		to.Status = pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_REJECTED
		if d.Reason == memory.Selected {
			to.Status = pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_SELECTED
		}
		to.Reason = pb.MemoryDecisionReason(d.Reason)
		to.Authority = fromAuthority(c.Authority)
		to.Score = c.Score
		to.SourceRank = c.SourceRank
		to.CandidateChars = uint32(d.Chars)
		if d.Counted {
			to.CandidateTokens = new(uint32(d.Tokens))
		}
		to.Position = uint32(d.Position)
		if d.Winner >= 0 {
			winner := &req.Candidates[d.Winner]
			to.RelatedMemoryId = winner.ID
			to.RelatedAuthority = fromAuthority(winner.Authority)
		}
		to.NormalizedConflictKey = d.NormalizedConflictKey
		to.Detail = d.Detail
		m.Decisions[i] = to
	}
	return m
}

// segmentKind returns the core's kind, or false if the number is none. Both enums have the same
// order; unset is custom.
func segmentKind(k pb.SegmentKind) (prompt.Kind, bool) {
	if _, defined := pb.SegmentKind_name[int32(k)]; !defined {
		return prompt.Custom, false
	}
	if k == pb.SegmentKind_SEGMENT_KIND_UNSPECIFIED {
		return prompt.Custom, true
	}
	return prompt.Kind(k - pb.SegmentKind_SEGMENT_KIND_BASE_INSTRUCTIONS), true
}

func fromSegmentKind(k prompt.Kind) pb.SegmentKind {
	return pb.SegmentKind_SEGMENT_KIND_BASE_INSTRUCTIONS + pb.SegmentKind(k)
}

// The budgets of a request that sets none.
var (
	defaultPromptChars  = budget.Of(12_000)
	defaultPromptTokens = budget.Unlimited()
)

// toPromptRequest returns the request with the context of the memory plan, if there is one, as a
// segment of its own.
func toPromptRequest(m *pb.PlanPromptRequest, memoryPlan *pb.MemoryContextPlan, counter tokens.Counter) prompt.Request {
	req := prompt.Request{
		Segments:  make([]prompt.Segment, 0, len(m.GetSegments())+1),
		MaxChars:  toBudget(m.GetMaxChars(), defaultPromptChars),
		MaxTokens: toBudget(m.GetMaxTokens(), defaultPromptTokens),
		Counter:   counter,
	}
	for _, s := range m.GetSegments() {
		req.Segments = append(req.Segments, toSegment(s))
	}
	if memoryPlan != nil {
		s := defaultSegment(prompt.RecalledMemory)
		s.Text = memoryPlan.GetContext()
		req.Segments = append(req.Segments, s)
	}
	return req
}

// toSegment returns the segment with the defaults of its kind filled in.
func toSegment(m *pb.PromptSegment) prompt.Segment {
	kind, _ := segmentKind(m.GetKind())
	s := defaultSegment(kind)
	s.Text = m.GetText()
	s.Provenance = m.GetProvenance()
	if m.GetName() != "" {
		s.Name = m.GetName()
	}
	if m.Priority != nil {
		s.Priority = m.GetPriority()
	}
	if m.BudgetPriority != nil {
		s.BudgetPriority = m.GetBudgetPriority()
	}
	if m.Required != nil {
		s.Required = m.GetRequired()
	}
	return s
}

func defaultSegment(kind prompt.Kind) prompt.Segment {
	d := kind.Defaults()
	return prompt.Segment{
		Name:           d.Name,
		Kind:           kind,
		Priority:       d.Priority,
		BudgetPriority: d.BudgetPriority,
		Required:       d.Required,
	}
}

func fromPromptPlan(req *prompt.Request, plan *prompt.Plan) *pb.PromptPlan {
	m := &pb.PromptPlan{
		Prompt:     plan.Prompt,
		MaxChars:   fromBudget(req.MaxChars),
		MaxTokens:  fromBudget(req.MaxTokens),
		Tokenizer:  req.Counter.Name(),
		UsedChars:  uint32(plan.UsedChars),
		UsedTokens: uint32(plan.UsedTokens),
	}
	for i := range plan.Decisions {
		d, s := &plan.Decisions[i], &req.Segments[plan.Decisions[i].Segment]
		to := &pb.SegmentDecision{
			Name:           s.Name,
			Kind:           fromSegmentKind(s.Kind),
			Priority:       s.Priority,
			BudgetPriority: s.BudgetPriority,
			Required:       s.Required,
			Provenance:     s.Provenance,
			Reason:         pb.SegmentDecisionReason(d.Reason),
			OriginalChars:  uint32(d.OriginalChars),
			RenderedChars:  uint32(d.RenderedChars),
			Detail:         d.Detail,
		}
		if d.Counted {
			to.SegmentTokens = new(uint32(d.Tokens))
		}
		switch {
		case d.Reason.Included():
			to.Status = pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_INCLUDED
			m.IncludedNames = append(m.IncludedNames, s.Name)
		case d.Reason == prompt.EmptyContent:
			to.Status = pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_INACTIVE
			m.InactiveNames = append(m.InactiveNames, s.Name)
		default:
			to.Status = pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_DROPPED
			m.DroppedNames = append(m.DroppedNames, s.Name)
		}
		m.Decisions = append(m.Decisions, to)
	}
	return m
}
