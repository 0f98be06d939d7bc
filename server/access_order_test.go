package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// strictPolicy is that of a caller of which much is asked. Its mandatory kinds are not in their order.
const strictPolicy = `version: 1
callers:
  - name: strict
    identities: [{source: mtls, spiffe: spiffe://example.org/strict}]
    authorities: [workspace_override]
    required: [base_instructions, identity, tool_descriptions, working_mode]
    scopes: [{exact: u}]
    bounds: {max_tokens: 100, max_chars: 1000, top_k: 3, min_score: 0.5}
    mandatory: [tool_descriptions, identity, base_instructions]
`

const (
	toolsKind = pb.SegmentKind_SEGMENT_KIND_TOOL_DESCRIPTIONS
	modeKind  = pb.SegmentKind_SEGMENT_KIND_WORKING_MODE
)

func sent(kind pb.SegmentKind, name, text string, required *bool) *pb.PromptSegment {
	return &pb.PromptSegment{Kind: kind, Name: name, Required: required, Body: &pb.PromptSegment_Text{Text: text}}
}

// Of all that is wrong with a request the first in the contract's order answers, with the first path of its
// kind.
func TestAccessOrder(t *testing.T) {
	g := serveAccess(t, newCA(t), strictPolicy, server.Config{})
	strict, unnamed := g.as(t, exampleID("/strict")), g.as(t, exampleID("/nobody"))
	nobody := connect(t, g.address, certified(g.ca), nil)

	limit := func(n uint32) *pb.Budget { return &pb.Budget{Bound: &pb.Budget_Limit{Limit: n}} }
	first, second := candidate("a", "x"), candidate("b", "y")
	first.Authority, second.Authority, second.SourceRank = workspace, turn, 0
	r := &pb.PlanPromptRequest{
		Segments: []*pb.PromptSegment{
			sent(modeKind, "", " ", nil),
			sent(0, "rules", "Obey.", new(true)),
			sent(project, "", "Go.", new(true)),
			sent(whoKind, "", "\t", nil),
		},
		Memory: &pb.SelectMemoryRequest{
			UserScope: "v",
			Recall: &pb.RecallResult{Query: &pb.RecallQuery{UserScope: "v"}, Hits: []*pb.RecallHit{{
				MemoryId: "h", Rank: 1, Snippet: "z",
				Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"}, ScoreBreakdown: &pb.ScoreBreakdown{Total: new(0.75)},
			}, {
				MemoryId: `g"`, Rank: 1, Snippet: "z",
				Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"}, ScoreBreakdown: &pb.ScoreBreakdown{Total: new(0.75)},
			}}},
			AuthorityByMemoryId: map[string]pb.Authority{"h": turn, `g"`: turn},
			Candidates:          []*pb.MemoryContextCandidate{first, second},
		},
		MaxChars: limit(9), MaxTokens: limit(1), Tokenizer: "other",
	}
	refuse := func(code codes.Code, reason string, pairs ...string) refused {
		metadata := map[string]string{"identity": exampleID("/strict"), "scope": "u"}
		for i := 0; i < len(pairs); i += 2 {
			metadata[pairs[i]] = pairs[i+1]
		}
		return refused{code, reason, metadata}
	}
	invalid := refused{codes.InvalidArgument, "INVALID_REQUEST", map[string]string{"violation_count": "1"}}
	authority := func(path string) refused {
		return refuse(codes.PermissionDenied, "AUTHORITY_NOT_PERMITTED", "path", path, "authority", "AUTHORITY_CURRENT_TURN")
	}
	required := func(path, name, kind string) refused {
		return refuse(codes.PermissionDenied, "REQUIRED_NOT_PERMITTED", "path", path, "segment", name, "kind", kind)
	}
	bound := func(field, bound string) refused {
		return refuse(codes.PermissionDenied, "POLICY_NOT_PERMITTED", "path", "memory.policy."+field, "field", field, "bound", bound)
	}
	mandatory := func(kind string) refused {
		return refuse(codes.FailedPrecondition, "MANDATORY_SEGMENT_MISSING", "path", "segments", "kind", kind)
	}
	budget := func(needed, limit, unit string) refused {
		return refused{codes.FailedPrecondition, "REQUIRED_SEGMENTS_EXCEED_BUDGET", map[string]string{
			"needed": needed, "limit": limit, "unit": unit, "segments": "base,identity,tools", "segment_count": "3",
		}}
	}
	m := r.GetMemory()
	for _, step := range []struct {
		want refused
		mend func()
	}{
		{invalid, func() { second.SourceRank = 1 }},
		{
			refuse(codes.PermissionDenied, "SCOPE_NOT_PERMITTED", "path", "memory.user_scope", "scope", "v"),
			func() { m.UserScope = "u" },
		},
		{authority(`memory.authority_by_memory_id["g\""]`), func() { delete(m.AuthorityByMemoryId, `g"`) }},
		{authority(`memory.authority_by_memory_id["h"]`), func() { m.AuthorityByMemoryId["h"] = workspace }},
		{authority("memory.candidates[1].authority"), func() { second.Authority = 0 }},
		{required("segments[1]", "rules", "SEGMENT_KIND_CUSTOM"), func() { r.Segments[1].Required = nil }},
		{required("segments[2]", "project", "SEGMENT_KIND_PROJECT_CONTEXT"), func() { r.Segments[2].Required = new(false) }},
		{bound("min_score", "0.5"), func() { m.Policy = &pb.MemorySelectionPolicy{MinScore: new(0.5)} }},
		{bound("top_k", "3"), func() { m.Policy.TopK = new(uint32(3)) }},
		{bound("max_chars", "1000"), func() { m.Policy.MaxChars = limit(0) }},
		{bound("max_tokens", "100"), func() { m.Policy.MaxTokens = limit(100) }},
		{mandatory("SEGMENT_KIND_BASE_INSTRUCTIONS"), func() { r.Segments = append(r.Segments, sent(baseKind, "", "Be.", nil)) }},
		{mandatory("SEGMENT_KIND_IDENTITY"), func() { r.Segments = append(r.Segments, sent(whoKind, "me", "I.", new(true))) }},
		{mandatory("SEGMENT_KIND_TOOL_DESCRIPTIONS"), func() { r.Segments = append(r.Segments, sent(toolsKind, "", "Saw.", nil)) }},
		{
			refused{codes.InvalidArgument, "UNKNOWN_TOKENIZER", map[string]string{"known": tokenizerNames()}},
			func() { r.Tokenizer = "" },
		},
		{
			refused{codes.FailedPrecondition, "REQUIRED_SEGMENT_EMPTY", map[string]string{"segment": "mode"}},
			func() {
				r.Segments[0], r.Segments[5].Name, r.Segments[3].Name = sent(0, "note", "?", nil), "identity", "other"
			},
		},
		{budget("23", "9", "chars"), func() { r.MaxChars = limit(23) }}, // Be., I., Saw. and two separators of 7
		{budget("12", "1", "tokens"), func() { r.MaxTokens = limit(12) }},
		{refused{}, func() {}},
	} {
		name := "before " + step.want.reason
		checkRefused(t, name+", without identity", invoke(t.Context(), t, nobody, r, nil),
			refused{codes.Unauthenticated, "IDENTITY_MISSING", nil})
		want := invalid
		if step.want.reason != invalid.reason {
			want = refuse(codes.PermissionDenied, "SCOPE_NOT_PERMITTED",
				"path", "memory.user_scope", "scope", m.GetUserScope(), "identity", exampleID("/nobody"))
		}
		checkRefused(t, name+", unnamed", invoke(t.Context(), t, unnamed, r, nil), want)
		checkRefused(t, name, invoke(t.Context(), t, strict, r, nil), step.want)
		step.mend()
	}
}

// A mandatory kind is there as a required segment that is not blank.
func TestAccessMandatoryKinds(t *testing.T) {
	g := serveAccess(t, newCA(t), strictPolicy, server.Config{})
	conn := g.as(t, exampleID("/strict"))
	base, me, tools := sent(baseKind, "", "Be.", nil), sent(whoKind, "", "I.", new(true)), sent(toolsKind, "", "Saw.", nil)
	missing := func(kind pb.SegmentKind) refused {
		return refused{codes.FailedPrecondition, "MANDATORY_SEGMENT_MISSING", map[string]string{
			"path": "segments", "identity": exampleID("/strict"), "kind": kind.String(),
		}}
	}
	for name, test := range map[string]struct {
		segments []*pb.PromptSegment
		want     refused
	}{
		"all":                {list(tools, me, base), refused{}},
		"none":               {nil, missing(baseKind)},
		"one missing":        {list(tools, base), missing(whoKind)},
		"blank base":         {list(sent(baseKind, "", "\u2003\n", nil), me, tools), missing(baseKind)},
		"no body":            {list(base, me, &pb.PromptSegment{Kind: toolsKind}), missing(toolsKind)},
		"blank tools":        {list(base, me, sent(toolsKind, "", " ", nil)), missing(toolsKind)},
		"not required":       {list(base, sent(whoKind, "", "I.", nil), tools), missing(whoKind)},
		"required: false":    {list(base, sent(whoKind, "", "I.", new(false)), tools), missing(whoKind)},
		"by name only":       {list(base, sent(0, "identity", "I.", nil), tools), missing(whoKind)},
		"a zero-width space": {list(base, sent(whoKind, "", "\u200b", new(true)), tools), refused{}}, // is content
		"twice, one is blank tools": {
			list(base, me, sent(toolsKind, "none", " ", nil), tools), refused{},
		},
		"twice, one is blank and required": {
			list(base, sent(whoKind, "other", " ", new(true)), me, tools),
			refused{codes.FailedPrecondition, "REQUIRED_SEGMENT_EMPTY", map[string]string{"segment": "other"}},
		},
		"twice, one is blank and optional": {list(base, sent(whoKind, "other", " ", nil), me, tools), refused{}},
		"twice, the optional one has text": {
			list(base, sent(whoKind, "other", "I.", nil), sent(whoKind, "", " ", new(true)), tools), missing(whoKind),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &pb.PlanPromptRequest{Segments: test.segments}
			checkRefused(t, name, invoke(t.Context(), t, conn, r, nil), test.want)
		})
	}
	t.Run("a selection", func(t *testing.T) { // is no prompt
		r := &pb.SelectMemoryRequest{UserScope: "u", Policy: &pb.MemorySelectionPolicy{
			MinScore: new(1.0), TopK: new(uint32(0)), MaxChars: &pb.Budget{Bound: &pb.Budget_Limit{Limit: 1000}},
			MaxTokens: &pb.Budget{Bound: &pb.Budget_Limit{Limit: 0}},
		}}
		checkRefused(t, "", invoke(t.Context(), t, conn, r, nil), refused{})
	})
}

// The longest names that there can be are in the refusal, which is within its size.
func TestAccessRefusalsOfLongestNames(t *testing.T) {
	id := exampleID("/" + strings.Repeat("x", 2048-len(exampleID("/"))))
	scope, key, name := strings.Repeat("é", 128), strings.Repeat(`"`, 256), strings.Repeat("n", 256)
	g := serveAccess(t, newCA(t), `version: 1
callers:
  - name: long
    identities: [{source: mtls, spiffe: "`+id+`"}]
    required: [base_instructions]
    mandatory: [base_instructions]
    scopes: [{exact: "`+scope+`"}]
`, server.Config{})
	conn := g.as(t, id)
	path := `memory.authority_by_memory_id["` + strings.Repeat(`\"`, 256) + `"]`
	r := &pb.PlanPromptRequest{Memory: &pb.SelectMemoryRequest{
		UserScope: scope,
		Recall: &pb.RecallResult{Query: &pb.RecallQuery{UserScope: scope}, Hits: []*pb.RecallHit{{
			MemoryId: key, Rank: 1, Snippet: "z",
			Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"}, ScoreBreakdown: &pb.ScoreBreakdown{Total: new(0.75)},
		}}},
		AuthorityByMemoryId: map[string]pb.Authority{key: turn},
	}}
	check := func(what string, want refused) {
		want.metadata["identity"], want.metadata["scope"] = id, r.GetMemory().GetUserScope()
		checkRefused(t, what, invoke(t.Context(), t, conn, r, nil), want)
	}
	check("authority", refused{codes.PermissionDenied, "AUTHORITY_NOT_PERMITTED", map[string]string{
		"path": path, "authority": "AUTHORITY_CURRENT_TURN",
	}})
	r.Memory.AuthorityByMemoryId = nil
	for range 255 {
		r.Segments = append(r.Segments, sent(0, strings.Repeat("m", len(r.Segments)+1), "x", nil))
	}
	check("mandatory", refused{codes.FailedPrecondition, "MANDATORY_SEGMENT_MISSING", map[string]string{
		"path": "segments", "kind": "SEGMENT_KIND_BASE_INSTRUCTIONS",
	}})
	r.Segments = append(r.Segments, sent(pb.SegmentKind_SEGMENT_KIND_EXPERT_INSTRUCTIONS, name, "x", new(true)))
	check("required", refused{codes.PermissionDenied, "REQUIRED_NOT_PERMITTED", map[string]string{
		"path": "segments[255]", "segment": name, "kind": "SEGMENT_KIND_EXPERT_INSTRUCTIONS",
	}})
	r.Memory.UserScope = strings.Repeat("é", 127) + "ee"
	check("scope", refused{codes.PermissionDenied, "SCOPE_NOT_PERMITTED", map[string]string{"path": "memory.user_scope"}})
}
