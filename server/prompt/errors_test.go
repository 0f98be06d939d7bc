package prompt_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/prompt"
)

func TestBlankRequiredSegment(t *testing.T) {
	base, mode := segment(prompt.BaseInstructions, "Base"), segment(prompt.WorkingMode, "craft")
	blank := func(s prompt.Segment) prompt.Segment {
		s.Text = "\t\u3000\n"
		return s
	}
	for _, tt := range []struct {
		name     string
		segments []prompt.Segment
		want     string
	}{
		{"base", []prompt.Segment{blank(base), mode}, "base"},
		{"mode", []prompt.Segment{mode, base, blank(custom("mode2", "", required))}, "mode2"},
		{"the first by priority", []prompt.Segment{blank(mode), custom("z", "", required), blank(base)}, "base"},
		{"then by name", []prompt.Segment{custom("b", "", required), custom("a", "", required), custom("A", "", required)}, "A"},
		{"an optional kind that the caller requires", []prompt.Segment{base, segment(prompt.Identity, "", required)}, "identity"},
		{"tools are excepted, others are not", []prompt.Segment{segment(prompt.ToolDescriptions, ""), blank(mode)}, "mode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// It comes before budgets: none of these fits.
			plan, err := newPlan(request(budget.Of(0), budget.Of(0), tt.segments...))
			var empty *prompt.EmptyError
			if plan != nil || !errors.As(err, &empty) || empty.Segment != tt.want {
				t.Errorf("%+v, %v; want an error about %s", plan, err, tt.want)
			}
		})
	}
}

func TestRequiredSegmentsPassABudget(t *testing.T) {
	unlimited := budget.Unlimited()
	segments := []prompt.Segment{
		segment(prompt.WorkingMode, "plan plan"),
		segment(prompt.ToolDescriptions, " "),
		segment(prompt.BaseInstructions, "--- b"), // required: verbatim
		custom("note", "界", required),
		segment(prompt.Identity, "me"),
	}
	names := []string{"base", "note", "mode"}
	for _, tt := range []struct {
		name          string
		chars, tokens budget.Budget
		want          prompt.BudgetError
	}{
		{"chars", budget.Of(28), unlimited, prompt.BudgetError{Needed: 29, Limit: 28, Unit: "chars", Segments: names}},
		{"tokens", unlimited, budget.Of(12), prompt.BudgetError{Needed: 13, Limit: 12, Unit: "tokens", Segments: names}},
		{"chars before tokens", budget.Of(0), budget.Of(0), prompt.BudgetError{Needed: 29, Limit: 0, Unit: "chars", Segments: names}},
		{"tokens, where chars fit", budget.Of(29), budget.Of(0), prompt.BudgetError{Needed: 13, Limit: 0, Unit: "tokens", Segments: names}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, segments := range [][]prompt.Segment{segments, segments[:4]} { // an optional one changes nothing
				plan, err := newPlan(request(tt.chars, tt.tokens, segments...))
				var over *prompt.BudgetError
				if plan != nil || !errors.As(err, &over) {
					t.Fatalf("%+v, %v; want a budget error", plan, err)
				}
				if diff := cmp.Diff(tt.want, *over); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
			}
		})
	}
	if _, err := newPlan(request(budget.Of(29), budget.Of(13), segments...)); err != nil {
		t.Errorf("budgets that are just enough: %v", err)
	}
}
