package prompt_test

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/prompt"
)

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		kind prompt.Kind
		want prompt.Defaults
	}{
		{prompt.BaseInstructions, prompt.Defaults{"base", 10, 0, true}},
		{prompt.Identity, prompt.Defaults{"identity", 20, 90, false}},
		{prompt.RecalledMemory, prompt.Defaults{"memory", 25, 60, false}},
		{prompt.ProjectContext, prompt.Defaults{"project", 30, 80, false}},
		{prompt.ToolDescriptions, prompt.Defaults{"tools", 40, 0, true}},
		{prompt.ExpertInstructions, prompt.Defaults{"expert", 50, 85, false}},
		{prompt.SkillInstructions, prompt.Defaults{"skills", 55, 75, false}},
		{prompt.ConnectorStatus, prompt.Defaults{"connectors", 60, 40, false}},
		{prompt.RegionalConventions, prompt.Defaults{"region", 70, 20, false}},
		{prompt.WorkingMode, prompt.Defaults{"mode", 80, 0, true}},
		{prompt.Custom, prompt.Defaults{"", 50, 50, false}},
	} {
		if got := tt.kind.Defaults(); got != tt.want {
			t.Errorf("kind %d: %+v, want %+v", tt.kind, got, tt.want)
		}
	}
}

func TestReasonIncluded(t *testing.T) {
	for reason, want := range map[prompt.Reason]bool{
		prompt.Required:            true,
		prompt.FitsBudget:          true,
		prompt.CharBudgetExceeded:  false,
		prompt.TokenBudgetExceeded: false,
		prompt.EmptyContent:        false,
	} {
		if got := reason.Included(); got != want {
			t.Errorf("%s is included: %t", reasonNames[reason], got)
		}
	}
}
