package rpc

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/prompt"
)

// The enums that are converted by number, by the names of their values.

func TestAuthorities(t *testing.T) {
	values := named(t, pb.Authority(0), map[string]memory.Authority{
		"USER_DEFAULT":       memory.UserDefault,
		"WORKSPACE_OVERRIDE": memory.WorkspaceOverride,
		"CURRENT_TURN":       memory.CurrentTurn,
	})
	for number, want := range values {
		if got := toAuthority(pb.Authority(number)); got != want {
			t.Errorf("%v becomes %v, want %v", pb.Authority(number), got, want)
		}
		if got := fromAuthority(want); got != pb.Authority(number) {
			t.Errorf("%v becomes %v, want %v", want, got, pb.Authority(number))
		}
	}
	if got := toAuthority(pb.Authority_AUTHORITY_UNSPECIFIED); got != memory.UserDefault {
		t.Errorf("unset becomes %v, want the user's default", got)
	}
}

func TestMemoryDecisionReasons(t *testing.T) {
	values := named(t, pb.MemoryDecisionReason(0), map[string]memory.Reason{
		"SCOPE_MISMATCH":        memory.ScopeMismatch,
		"LOW_CONFIDENCE":        memory.LowConfidence,
		"DUPLICATE_CONTENT":     memory.DuplicateContent,
		"AUTHORITY_LOSER":       memory.AuthorityLoser,
		"CONFLICT_LOSER":        memory.ConflictLoser,
		"TOP_K_REACHED":         memory.TopKReached,
		"CHAR_BUDGET_EXCEEDED":  memory.CharBudgetExceeded,
		"TOKEN_BUDGET_EXCEEDED": memory.TokenBudgetExceeded,
		"SELECTED":              memory.Selected,
	})
	req := &memory.Request{Candidates: make([]memory.Candidate, 1), Counter: panicking{}}
	for number, reason := range values {
		plan := fromMemoryPlan(req, &memory.Plan{Decisions: []memory.Decision{{Reason: reason, Winner: -1}}})
		got, status := plan.GetDecisions()[0], pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_REJECTED
		if reason == memory.Selected {
			status = pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_SELECTED
		}
		if want := pb.MemoryDecisionReason(number); got.GetReason() != want || got.GetStatus() != status {
			t.Errorf("got %v and %v, want %v and %v", got.GetReason(), got.GetStatus(), want, status)
		}
	}
}

func TestSegmentKinds(t *testing.T) {
	values := named(t, pb.SegmentKind(0), map[string]prompt.Kind{
		"BASE_INSTRUCTIONS":    prompt.BaseInstructions,
		"IDENTITY":             prompt.Identity,
		"RECALLED_MEMORY":      prompt.RecalledMemory,
		"PROJECT_CONTEXT":      prompt.ProjectContext,
		"TOOL_DESCRIPTIONS":    prompt.ToolDescriptions,
		"EXPERT_INSTRUCTIONS":  prompt.ExpertInstructions,
		"SKILL_INSTRUCTIONS":   prompt.SkillInstructions,
		"CONNECTOR_STATUS":     prompt.ConnectorStatus,
		"REGIONAL_CONVENTIONS": prompt.RegionalConventions,
		"WORKING_MODE":         prompt.WorkingMode,
		"CUSTOM":               prompt.Custom,
	})
	for number, want := range values {
		if got, defined := segmentKind(pb.SegmentKind(number)); got != want || !defined {
			t.Errorf("%v becomes %v (%t), want %v", pb.SegmentKind(number), got, defined, want)
		}
		if got := fromSegmentKind(want); got != pb.SegmentKind(number) {
			t.Errorf("%v becomes %v, want %v", want, got, pb.SegmentKind(number))
		}
	}
	if got, defined := segmentKind(pb.SegmentKind_SEGMENT_KIND_UNSPECIFIED); got != prompt.Custom || !defined {
		t.Errorf("unset becomes %v (%t), want a custom kind", got, defined)
	}
	for _, number := range []pb.SegmentKind{-1, 12} {
		if got, defined := segmentKind(number); defined {
			t.Errorf("%d becomes %v, want none", number, got)
		}
	}
}

func TestSegmentDecisionReasons(t *testing.T) {
	const (
		included = pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_INCLUDED
		dropped  = pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_DROPPED
		inactive = pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_INACTIVE
	)
	statuses := map[prompt.Reason]pb.SegmentDecisionStatus{
		prompt.Required:            included,
		prompt.FitsBudget:          included,
		prompt.CharBudgetExceeded:  dropped,
		prompt.TokenBudgetExceeded: dropped,
		prompt.EmptyContent:        inactive,
	}
	values := named(t, pb.SegmentDecisionReason(0), map[string]prompt.Reason{
		"REQUIRED":              prompt.Required,
		"FITS_BUDGET":           prompt.FitsBudget,
		"CHAR_BUDGET_EXCEEDED":  prompt.CharBudgetExceeded,
		"TOKEN_BUDGET_EXCEEDED": prompt.TokenBudgetExceeded,
		"EMPTY_CONTENT":         prompt.EmptyContent,
	})
	req := &prompt.Request{Segments: []prompt.Segment{{Name: "s"}}, Counter: panicking{}}
	for number, reason := range values {
		plan := fromPromptPlan(req, &prompt.Plan{Decisions: []prompt.Decision{{Reason: reason}}})
		got, want := plan.GetDecisions()[0], pb.SegmentDecisionReason(number)
		if got.GetReason() != want || got.GetStatus() != statuses[reason] {
			t.Errorf("got %v and %v, want %v and %v", got.GetReason(), got.GetStatus(), want, statuses[reason])
		}
		names := map[pb.SegmentDecisionStatus][]string{
			included: plan.GetIncludedNames(), dropped: plan.GetDroppedNames(), inactive: plan.GetInactiveNames(),
		}
		for status, names := range names {
			if listed := len(names) == 1; listed != (status == statuses[reason]) {
				t.Errorf("%v: among the names of %v: %t", want, status, listed)
			}
		}
	}
}

// named returns the core's values by the enum's numbers. It fails the test unless they are all that
// the enum has, but for its zero.
func named[V any](t *testing.T, enum protoreflect.Enum, core map[string]V) map[protoreflect.EnumNumber]V {
	t.Helper()
	values := enum.Descriptor().Values()
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	numbered := make(map[protoreflect.EnumNumber]V)
	for i := 1; i < values.Len(); i++ {
		value := values.Get(i)
		v, ok := core[strings.TrimPrefix(string(value.Name()), prefix)]
		if !ok {
			t.Errorf("%s is not among the core's", value.Name())
		}
		numbered[value.Number()] = v
	}
	if len(numbered) != len(core) {
		t.Errorf("the enum has %d values, the core %d", len(numbered), len(core))
	}
	return numbered
}
