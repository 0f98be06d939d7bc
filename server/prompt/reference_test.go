package prompt_test

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/prompt"
)

// reference plans straight from the contract, with no regard to time: it joins and counts the whole
// prompt anew in every trial. Its decisions have no sentences.
func reference(req prompt.Request) (*prompt.Plan, error) {
	r := &referenceRun{Request: req}
	for i, s := range req.Segments {
		r.entries = append(r.entries, &entry{Segment: s, index: i, placed: neutralised(s)})
	}
	slices.SortFunc(r.entries, func(a, b *entry) int {
		if a.Priority != b.Priority {
			return order(a.Priority < b.Priority)
		}
		return order(a.Name < b.Name)
	})

	for _, e := range r.entries {
		if strings.TrimSpace(e.Text) == "" {
			if e.Required && e.Kind != prompt.ToolDescriptions {
				return nil, &prompt.EmptyError{Segment: e.Name}
			}
			e.reason = prompt.EmptyContent
		}
	}

	var names []string
	for _, e := range r.entries {
		if e.Required && e.reason == 0 {
			e.reason, names = prompt.Required, append(names, e.Name)
		}
	}
	chars, tokens := r.used()
	if over(req.MaxChars, chars) {
		return nil, &prompt.BudgetError{Needed: chars, Limit: req.MaxChars.Limit, Unit: "chars", Segments: names}
	}
	if over(req.MaxTokens, tokens) {
		return nil, &prompt.BudgetError{Needed: tokens, Limit: req.MaxTokens.Limit, Unit: "tokens", Segments: names}
	}

	tried := slices.Clone(r.entries)
	slices.SortFunc(tried, func(a, b *entry) int {
		switch {
		case a.BudgetPriority != b.BudgetPriority:
			return order(a.BudgetPriority > b.BudgetPriority)
		case a.Priority != b.Priority:
			return order(a.Priority < b.Priority)
		default:
			return order(a.Name < b.Name)
		}
	})
	for _, e := range tried {
		if e.reason != 0 {
			continue
		}
		e.reason = prompt.FitsBudget
		chars, tokens := r.used()
		if over(req.MaxChars, chars) {
			e.reason = prompt.CharBudgetExceeded
		} else if over(req.MaxTokens, tokens) {
			e.reason = prompt.TokenBudgetExceeded
		}
	}
	return r.plan(), nil
}

type referenceRun struct {
	prompt.Request
	entries []*entry
}

type entry struct {
	prompt.Segment
	index  int
	reason prompt.Reason
	placed string
}

func order(before bool) int {
	if before {
		return -1
	}
	return +1
}

func over(b budget.Budget, n int) bool { return !b.Unlimited && uint64(n) > uint64(b.Limit) }

func (r *referenceRun) prompt() string {
	var texts []string
	for _, e := range r.entries {
		if e.reason.Included() {
			texts = append(texts, e.placed)
		}
	}
	return strings.Join(texts, "\n\n---\n\n")
}

func (r *referenceRun) used() (chars, tokens int) {
	whole := r.prompt()
	return utf8.RuneCountInString(whole), r.Counter.Count([]byte(whole))
}

func (r *referenceRun) plan() *prompt.Plan {
	plan := &prompt.Plan{Prompt: r.prompt()}
	plan.UsedChars, plan.UsedTokens = r.used()
	for _, e := range r.entries {
		d := prompt.Decision{Segment: e.index, Reason: e.reason, OriginalChars: utf8.RuneCountInString(e.Text)}
		if e.reason.Included() {
			d.RenderedChars = utf8.RuneCountInString(e.placed)
		}
		if e.reason.Included() || e.reason == prompt.TokenBudgetExceeded {
			d.Counted, d.Tokens = true, r.Counter.Count([]byte(e.placed))
		}
		plan.Decisions = append(plan.Decisions, d)
	}
	return plan
}

var (
	boundary  = regexp.MustCompile(`(^|[\n\r\v\f\x{85}\x{2028}\x{2029}])---`)
	memoryTag = regexp.MustCompile(`<(/?(?:[Rr][Ee][Cc][Aa][Ll][Ll][Ee][Dd]_[Mm][Ee][Mm][Oo][Rr][Yy]|[Mm][Ee][Mm][Oo][Rr][Yy]_[Hh][Ii][Tt]))`)
)

// neutralised is the segment's text as it would be placed.
func neutralised(s prompt.Segment) string {
	if s.Required || s.Kind == prompt.RecalledMemory {
		return s.Text
	}
	return memoryTag.ReplaceAllString(boundary.ReplaceAllString(s.Text, "$1&#45;--"), "&lt;$1")
}
