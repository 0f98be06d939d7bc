package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/policy"
	"github.com/promptassembly/promptassembly/server/memory"
)

func TestJudge(t *testing.T) {
	p := example(t)
	harness := p.Rights(spiffe(identity.MTLS, "/ns/prod/sa/harness"))
	agent := p.Rights(token("agent", "acme"))

	// permitted asks for a prompt with memory, and for all that the harness may.
	permitted := func() *policy.Asserted {
		a := &policy.Asserted{Prompt: true, Memory: true, Scope: "user:mei", Policy: memory.DefaultPolicy()}
		a.Candidate(0, currentTurn)
		a.Candidate(1, workspaceOverride)
		a.Require(0, "base", base, false)
		a.Require(1, "tools", tools, true)
		return a
	}
	// shared asks in a workspace where not all of it is permitted.
	shared := func() *policy.Asserted {
		a := &policy.Asserted{Memory: true, Scope: "team/a/1", Policy: memory.DefaultPolicy()}
		a.Candidate(0, pb.Authority_AUTHORITY_USER_DEFAULT)
		return a
	}
	const (
		scope     = pb.ErrorReason_ERROR_REASON_SCOPE_NOT_PERMITTED
		authority = pb.ErrorReason_ERROR_REASON_AUTHORITY_NOT_PERMITTED
		required  = pb.ErrorReason_ERROR_REASON_REQUIRED_NOT_PERMITTED
		bounds    = pb.ErrorReason_ERROR_REASON_POLICY_NOT_PERMITTED
		mandatory = pb.ErrorReason_ERROR_REASON_MANDATORY_SEGMENT_MISSING
	)
	for _, test := range []struct {
		name   string
		rights *policy.Rights
		from   func() *policy.Asserted
		change func(*policy.Asserted)
		want   *policy.Denial
	}{
		{"permitted", harness, permitted, nil, nil},
		{"permitted in a workspace", harness, shared, nil, nil},
		{"a scope in a prompt", harness, permitted, func(a *policy.Asserted) { a.Scope = "user:kim" }, &policy.Denial{Reason: scope, Path: "memory.user_scope", Scope: "user:kim"}},
		{"a scope", agent, shared, nil, &policy.Denial{Reason: scope, Path: "user_scope", Scope: "team/a/1"}},
		{"nobody", nil, shared, nil, &policy.Denial{Reason: scope, Path: "user_scope", Scope: "team/a/1"}},
		{"nobody, a prompt without memory", nil, permitted, func(a *policy.Asserted) { *a = policy.Asserted{Prompt: true} }, &policy.Denial{Reason: scope}},
		{
			"an authority of a candidate", harness, shared,
			func(a *policy.Asserted) { a.Candidate(7, currentTurn); a.Candidate(9, currentTurn) },
			&policy.Denial{Reason: authority, Path: "candidates[7].authority", Scope: "team/a/1", Authority: currentTurn},
		},
		{
			"the first authority that is refused", harness, shared,
			func(a *policy.Asserted) {
				a.Candidate(6, workspaceOverride)
				a.Candidate(7, currentTurn)
				a.Candidate(8, 77)
			},
			&policy.Denial{Reason: authority, Path: "candidates[7].authority", Scope: "team/a/1", Authority: currentTurn},
		},
		{
			"a number outside the enum", harness, permitted,
			func(a *policy.Asserted) { a.Candidate(8, 77) },
			&policy.Denial{Reason: authority, Path: "memory.candidates[8].authority", Scope: "user:mei", Authority: 77},
		},
		{
			"the first annotation comes before candidates", harness, shared,
			func(a *policy.Asserted) {
				a.Candidate(0, currentTurn)
				a.Annotate("m2", currentTurn)
				a.Annotate(`m"1\`, currentTurn)
				a.Annotate("m3", currentTurn)
				a.Annotate("m", workspaceOverride)
			},
			&policy.Denial{Reason: authority, Path: `authority_by_memory_id["m\"1\\"]`, Scope: "team/a/1", Authority: currentTurn},
		},
		{
			"a required segment", harness, permitted,
			func(a *policy.Asserted) {
				*a = policy.Asserted{Prompt: true, Memory: true, Scope: "team/a/1", Policy: a.Policy}
				a.Require(2, "base", base, false)
				a.Require(3, "mode", mode, true)
				a.Require(4, "note", 0, false)
			},
			&policy.Denial{Reason: required, Path: "segments[3]", Scope: "team/a/1", Segment: "mode", Kind: mode},
		},
		{
			"a required segment of no kind, without memory", harness, permitted,
			func(a *policy.Asserted) { a.Memory, a.Scope = false, ""; a.Require(4, "note", 0, false) },
			&policy.Denial{Reason: required, Path: "segments[4]", Segment: "note", Kind: custom},
		},
		{
			"min_score", harness, permitted, func(a *policy.Asserted) { a.Policy.MinScore = 0.19; a.Policy.TopK = 100 },
			&policy.Denial{Reason: bounds, Path: "memory.policy.min_score", Scope: "user:mei", Field: "min_score", Bound: "0.2"},
		},
		{
			"top_k", harness, shared, func(a *policy.Asserted) { a.Policy.TopK = 21; a.Policy.MaxChars = budget.Unlimited() },
			&policy.Denial{Reason: bounds, Path: "policy.top_k", Scope: "team/a/1", Field: "top_k", Bound: "20"},
		},
		{
			"max_chars", harness, shared, func(a *policy.Asserted) { a.Policy.MaxChars = budget.Of(6001); a.Policy.MaxTokens = budget.Unlimited() },
			&policy.Denial{Reason: bounds, Path: "policy.max_chars", Scope: "team/a/1", Field: "max_chars", Bound: "6000"},
		},
		{
			"max_tokens, unlimited", harness, shared, func(a *policy.Asserted) { a.Policy.MaxTokens = budget.Unlimited() },
			&policy.Denial{Reason: bounds, Path: "policy.max_tokens", Scope: "team/a/1", Field: "max_tokens", Bound: "2000"},
		},
		{"at every bound", harness, shared, func(a *policy.Asserted) {
			a.Policy = memory.Policy{MinScore: 0.2, TopK: 20, MaxChars: budget.Of(6000), MaxTokens: budget.Of(2000)}
		}, nil},
		{
			"a mandatory kind is missing", harness, permitted,
			func(a *policy.Asserted) { *a = policy.Asserted{Prompt: true} },
			&policy.Denial{Reason: mandatory, Path: "segments", Kind: base},
		},
		{
			"a mandatory kind is blank", harness, permitted,
			func(a *policy.Asserted) { *a = policy.Asserted{Prompt: true}; a.Require(0, "base", base, true) },
			&policy.Denial{Reason: mandatory, Path: "segments", Kind: base},
		},
		{
			"one of a mandatory kind is blank", harness, permitted,
			func(a *policy.Asserted) { a.Require(3, "base2", base, true) }, nil,
		},
		{
			"the scope comes before all", harness, permitted,
			func(a *policy.Asserted) {
				*a = policy.Asserted{Prompt: true, Memory: true, Scope: "user:kim"}
				a.Candidate(0, 77)
				a.Require(0, "note", custom, false)
			},
			&policy.Denial{Reason: scope, Path: "memory.user_scope", Scope: "user:kim"},
		},
		{
			"authorities come before required segments", harness, permitted,
			func(a *policy.Asserted) { a.Candidate(5, 77); a.Require(5, "note", custom, false) },
			&policy.Denial{Reason: authority, Path: "memory.candidates[5].authority", Scope: "user:mei", Authority: 77},
		},
		{
			"required segments come before bounds", harness, permitted,
			func(a *policy.Asserted) { a.Policy.TopK = 100; a.Require(5, "note", custom, false) },
			&policy.Denial{Reason: required, Path: "segments[5]", Scope: "user:mei", Segment: "note", Kind: custom},
		},
		{
			"bounds come before mandatory kinds", harness, permitted,
			func(a *policy.Asserted) {
				*a = policy.Asserted{Prompt: true, Memory: true, Scope: "user:mei", Policy: memory.DefaultPolicy()}
				a.Policy.TopK = 100
			},
			&policy.Denial{Reason: bounds, Path: "memory.policy.top_k", Scope: "user:mei", Field: "top_k", Bound: "20"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := test.from()
			if test.change != nil {
				test.change(a)
			}
			if diff := cmp.Diff(test.want, test.rights.Judge(a)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// With every number of the enums, in whatever order the map's entries come, one place is refused: the
// first in the request.
func TestJudgeNamesTheFirst(t *testing.T) {
	worker := example(t).Rights(spiffe(identity.MTLS, "/ns/prod/sa/worker"))
	for _, keys := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}} {
		a := policy.Asserted{Memory: true, Scope: "namespace/prod", Policy: memory.DefaultPolicy()}
		a.Candidate(0, workspaceOverride)
		for _, key := range keys {
			a.Annotate(key, map[string]pb.Authority{"a": 1, "b": workspaceOverride, "c": currentTurn}[key])
		}
		want := &policy.Denial{
			Reason: pb.ErrorReason_ERROR_REASON_AUTHORITY_NOT_PERMITTED, Path: `authority_by_memory_id["b"]`,
			Scope: "namespace/prod", Authority: workspaceOverride,
		}
		if diff := cmp.Diff(want, worker.Judge(&a)); diff != "" {
			t.Errorf("%v: %s", keys, diff)
		}
	}
}
