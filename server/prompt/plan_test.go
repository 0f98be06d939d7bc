package prompt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/prompt"
	"github.com/promptassembly/promptassembly/server/tokens"
)

var reasonNames = map[prompt.Reason]string{
	prompt.Required:            "REQUIRED",
	prompt.FitsBudget:          "FITS_BUDGET",
	prompt.CharBudgetExceeded:  "CHAR_BUDGET_EXCEEDED",
	prompt.TokenBudgetExceeded: "TOKEN_BUDGET_EXCEEDED",
	prompt.EmptyContent:        "EMPTY_CONTENT",
}

// segment is one with the defaults of its kind.
func segment(kind prompt.Kind, text string, with ...func(*prompt.Segment)) prompt.Segment {
	d := kind.Defaults()
	s := prompt.Segment{
		Name: d.Name, Kind: kind, Text: text, Priority: d.Priority, BudgetPriority: d.BudgetPriority, Required: d.Required,
	}
	for _, set := range with {
		set(&s)
	}
	return s
}

func custom(name, text string, with ...func(*prompt.Segment)) prompt.Segment {
	s := segment(prompt.Custom, text, with...)
	s.Name = name
	return s
}

func at(priority int32) func(*prompt.Segment) {
	return func(s *prompt.Segment) { s.Priority = priority }
}

func worth(budgetPriority int32) func(*prompt.Segment) {
	return func(s *prompt.Segment) { s.BudgetPriority = budgetPriority }
}

func required(s *prompt.Segment) { s.Required = true }

func request(chars, tokenBudget budget.Budget, segments ...prompt.Segment) prompt.Request {
	return prompt.Request{Segments: segments, MaxChars: chars, MaxTokens: tokenBudget, Counter: tokens.Estimate{}}
}

// newPlan plans for as long as it takes.
func newPlan(req prompt.Request) (*prompt.Plan, error) { return prompt.New(context.Background(), req) }

// fates are the decisions in the prompt's order: each segment's name and reason.
func fates(req prompt.Request, plan *prompt.Plan) []string {
	var fates []string
	for _, d := range plan.Decisions {
		fates = append(fates, req.Segments[d.Segment].Name+" "+reasonNames[d.Reason])
	}
	return fates
}

func TestPlan(t *testing.T) {
	const separator = "\n\n---\n\n" // 7 chars, 3 tokens
	unlimited := budget.Unlimited()
	base, mode := segment(prompt.BaseInstructions, "Base"), segment(prompt.WorkingMode, "craft")
	memory := "<recalled_memory>\n---\n</recalled_memory>"

	for _, tt := range []struct {
		name       string
		req        prompt.Request
		wantPrompt string
		want       []string
	}{
		{
			name: "no segment",
			req:  request(budget.Of(0), budget.Of(0)),
		},
		{
			name: "every kind, in the order of the table",
			req: request(
				unlimited, unlimited,
				mode,
				segment(prompt.RegionalConventions, "r"),
				segment(prompt.ConnectorStatus, "c"),
				segment(prompt.SkillInstructions, "s"),
				segment(prompt.ExpertInstructions, "e"),
				custom("note", "n"),
				segment(prompt.ToolDescriptions, "t"),
				segment(prompt.ProjectContext, "p"),
				segment(prompt.RecalledMemory, memory),
				segment(prompt.Identity, "i"),
				base,
			),
			wantPrompt: strings.Join([]string{"Base", "i", memory, "p", "t", "e", "n", "s", "c", "r", "craft"}, separator),
			want: []string{
				"base REQUIRED", "identity FITS_BUDGET", "memory FITS_BUDGET", "project FITS_BUDGET", "tools REQUIRED", "expert FITS_BUDGET",
				"note FITS_BUDGET", "skills FITS_BUDGET", "connectors FITS_BUDGET", "region FITS_BUDGET", "mode REQUIRED",
			},
		},
		{
			name: "priorities go before kinds, names as bytes after both",
			req: request(
				unlimited, unlimited,
				segment(prompt.BaseInstructions, "1", at(5)), custom("b", "2", at(-1)), custom("B", "3", at(-1)),
				custom("é", "4", at(5)), custom("z", "5", at(5)), custom("first", "6", at(-2147483648)), custom("last", "7", at(2147483647)),
			),
			wantPrompt: strings.Join([]string{"6", "3", "2", "1", "5", "4", "7"}, separator),
			want: []string{
				"first FITS_BUDGET", "B FITS_BUDGET", "b FITS_BUDGET", "base REQUIRED", "z FITS_BUDGET", "é FITS_BUDGET", "last FITS_BUDGET",
			},
		},
		{
			name: "the most valuable is tried first, what is too long is skipped",
			req: request(
				budget.Of(4+7+5+7+12+7+13), unlimited, base, mode,
				segment(prompt.RegionalConventions, "Region text", at(5), worth(10)),
				segment(prompt.Identity, "Identity 012", at(50), worth(80)),
				segment(prompt.SkillInstructions, strings.Repeat("s", 500), at(10), worth(90)),
				segment(prompt.ConnectorStatus, "Connector: up", at(30), worth(20)),
			),
			wantPrompt: strings.Join([]string{"Base", "Connector: up", "Identity 012", "craft"}, separator),
			want: []string{
				"region CHAR_BUDGET_EXCEEDED", "base REQUIRED", "skills CHAR_BUDGET_EXCEEDED",
				"connectors FITS_BUDGET", "identity FITS_BUDGET", "mode REQUIRED",
			},
		},
		{
			name: "of one worth, the first in the prompt is tried first",
			req: request(
				budget.Of(5), unlimited,
				custom("a", "aaaaa", at(2)), custom("b", "bbbbb", at(1)), custom("c", "ccccc", at(1)),
			),
			wantPrompt: "bbbbb",
			want:       []string{"b FITS_BUDGET", "c CHAR_BUDGET_EXCEEDED", "a CHAR_BUDGET_EXCEEDED"},
		},
		{
			name:       "worth may be negative",
			req:        request(budget.Of(1), unlimited, custom("a", "a", worth(-2147483648)), custom("b", "b", worth(-1))),
			wantPrompt: "b",
			want:       []string{"a CHAR_BUDGET_EXCEEDED", "b FITS_BUDGET"},
		},
		{
			name:       "a separator costs chars",
			req:        request(budget.Of(8), unlimited, custom("a", "a"), custom("b", "b")),
			wantPrompt: "a",
			want:       []string{"a FITS_BUDGET", "b CHAR_BUDGET_EXCEEDED"},
		},
		{
			name:       "a limit on chars is inclusive",
			req:        request(budget.Of(9), unlimited, custom("a", "a"), custom("b", "b")),
			wantPrompt: "a" + separator + "b",
			want:       []string{"a FITS_BUDGET", "b FITS_BUDGET"},
		},
		{
			name:       "a separator costs tokens",
			req:        request(unlimited, budget.Of(4), custom("a", "a"), custom("b", "b")),
			wantPrompt: "a",
			want:       []string{"a FITS_BUDGET", "b TOKEN_BUDGET_EXCEEDED"},
		},
		{
			name:       "a limit on tokens is inclusive",
			req:        request(unlimited, budget.Of(5), custom("a", "a"), custom("b", "b")),
			wantPrompt: "a" + separator + "b",
			want:       []string{"a FITS_BUDGET", "b FITS_BUDGET"},
		},
		{
			name:       "chars are looked at before tokens",
			req:        request(budget.Of(3), budget.Of(1), custom("a", "a b c"), custom("b", "b c"), custom("c", "c")),
			wantPrompt: "c",
			want:       []string{"a CHAR_BUDGET_EXCEEDED", "b TOKEN_BUDGET_EXCEEDED", "c FITS_BUDGET"},
		},
		{
			name: "chars are code points",
			req:  request(budget.Of(3), unlimited, custom("a", "界é𝒳")), wantPrompt: "界é𝒳",
			want: []string{"a FITS_BUDGET"},
		},
		{
			name:       "what is required goes first, whatever anything is worth",
			req:        request(budget.Of(5), unlimited, custom("a", "a", worth(2147483647)), custom("b", "bbbbb", required, worth(-5))),
			wantPrompt: "bbbbb",
			want:       []string{"a CHAR_BUDGET_EXCEEDED", "b REQUIRED"},
		},
		{
			name: "blank bodies cost nothing",
			req: request(
				budget.Of(4), unlimited, base,
				segment(prompt.Identity, ""), segment(prompt.RecalledMemory, ""), segment(prompt.ProjectContext, " \t\n\u3000"),
				segment(prompt.ToolDescriptions, "\u00A0"),
			),
			wantPrompt: "Base",
			want: []string{
				"base REQUIRED", "identity EMPTY_CONTENT", "memory EMPTY_CONTENT", "project EMPTY_CONTENT", "tools EMPTY_CONTENT",
			},
		},
		{
			name:       "what only looks blank is placed",
			req:        request(unlimited, unlimited, custom("a", "\u200B"), custom("b", "\x1C")),
			wantPrompt: "\u200B" + separator + "\x1C",
			want:       []string{"a FITS_BUDGET", "b FITS_BUDGET"},
		},
		{
			name: "optional text is neutralised, required text and memory are not",
			req: request(
				unlimited, unlimited,
				segment(prompt.BaseInstructions, "---\n<memory_hit>"),
				segment(prompt.RecalledMemory, memory),
				segment(prompt.ProjectContext, "---\n<memory_hit>"),
				custom("note", "---\n</Recalled_Memory>", required),
			),
			wantPrompt: "---\n<memory_hit>" + separator + memory + separator + "&#45;--\n&lt;memory_hit>" + separator + "---\n</Recalled_Memory>",
			want:       []string{"base REQUIRED", "memory FITS_BUDGET", "project FITS_BUDGET", "note REQUIRED"},
		},
		{
			name:       "what neutralising adds counts",
			req:        request(budget.Of(6), unlimited, custom("a", "---")),
			wantPrompt: "",
			want:       []string{"a CHAR_BUDGET_EXCEEDED"},
		},
		{
			name:       "it is four chars a dash",
			req:        request(budget.Of(7), unlimited, custom("a", "---")),
			wantPrompt: "&#45;--",
			want:       []string{"a FITS_BUDGET"},
		},
		{
			name:       "white space around a text stays",
			req:        request(unlimited, unlimited, base, custom("a", "\n a \n")),
			wantPrompt: "Base" + separator + "\n a \n",
			want:       []string{"base REQUIRED", "a FITS_BUDGET"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, err := newPlan(tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Prompt != tt.wantPrompt {
				t.Errorf("prompt\n%q\nwant\n%q", plan.Prompt, tt.wantPrompt)
			}
			if diff := cmp.Diff(tt.want, fates(tt.req, plan), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManySegmentsAreTriedInOrder(t *testing.T) {
	var segments []prompt.Segment
	for i := range 60 {
		segments = append(segments, custom(fmt.Sprintf("%02d", i), "x", worth(int32(i%3))))
	}
	req := request(budget.Of(30+29*7), budget.Unlimited(), segments...) // room for 30
	plan, err := newPlan(req)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range plan.Decisions {
		// All 20 that are worth 2, and the first 10 that are worth 1.
		i := d.Segment
		if want := i%3 == 2 || i%3 == 1 && i < 30; d.Reason.Included() != want {
			t.Errorf("segment %d, worth %d: %s", i, i%3, reasonNames[d.Reason])
		}
	}
}

func TestPlanReportsWhatItUsed(t *testing.T) {
	plan, err := newPlan(request(
		budget.Of(40), budget.Of(12),
		segment(prompt.BaseInstructions, "Use Go."),
		segment(prompt.Identity, "a b c d e f"),
		segment(prompt.ProjectContext, "---\n界"),
		segment(prompt.SkillInstructions, strings.Repeat("s", 50)),
		segment(prompt.WorkingMode, "plan"),
		segment(prompt.ConnectorStatus, "  "),
	))
	if err != nil {
		t.Fatal(err)
	}
	want := &prompt.Plan{
		Prompt:     "Use Go.\n\n---\n\nplan",
		UsedChars:  18,
		UsedTokens: 3 + 3 + 1,
		Decisions: []prompt.Decision{
			{Segment: 0, Reason: prompt.Required, OriginalChars: 7, RenderedChars: 7, Counted: true, Tokens: 3},
			{Segment: 1, Reason: prompt.TokenBudgetExceeded, OriginalChars: 11, Counted: true, Tokens: 6},
			// "&#45;--\n界" is 9 chars of 22 that are left, and 7 tokens.
			{Segment: 2, Reason: prompt.TokenBudgetExceeded, OriginalChars: 5, Counted: true, Tokens: 7},
			{Segment: 3, Reason: prompt.CharBudgetExceeded, OriginalChars: 50},
			{Segment: 5, Reason: prompt.EmptyContent, OriginalChars: 2},
			{Segment: 4, Reason: prompt.Required, OriginalChars: 4, RenderedChars: 4, Counted: true, Tokens: 1},
		},
	}
	if diff := cmp.Diff(want, plan, cmpopts.IgnoreFields(prompt.Decision{}, "Detail")); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestPlanDetails(t *testing.T) {
	req := request(
		budget.Of(20), budget.Of(8),
		segment(prompt.BaseInstructions, "Base"),
		segment(prompt.Identity, "I am"),
		segment(prompt.RecalledMemory, ""),
		segment(prompt.ProjectContext, "too long by 9"),
		segment(prompt.ToolDescriptions, ""),
		segment(prompt.SkillInstructions, "x"),
	)
	plan, err := newPlan(req)
	if err != nil {
		t.Fatal(err)
	}
	says := [][]string{
		{"required"},
		{"15 chars", "6 tokens"},
		{"no memory"},
		{"35 chars", "max_chars 20"},
		{"blank"},
		{"23 chars", "max_chars 20"},
	}
	for i, d := range plan.Decisions {
		for _, part := range says[i] {
			if !strings.Contains(d.Detail, part) {
				t.Errorf("%s: %q lacks %q", req.Segments[d.Segment].Name, d.Detail, part)
			}
		}
	}

	req.MaxChars, req.MaxTokens = budget.Unlimited(), budget.Of(6)
	if plan, err = newPlan(req); err != nil {
		t.Fatal(err)
	}
	if got := plan.Decisions[3].Detail; !strings.Contains(got, "13 tokens") || !strings.Contains(got, "max_tokens 6") {
		t.Errorf("project: %q", got)
	}
}
