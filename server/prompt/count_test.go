package prompt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/prompt"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// A tally notes what it is asked to count.
type tally struct {
	tokens.Counter
	asked []string
}

func (c *tally) Count(text []byte) int {
	c.asked = append(c.asked, string(text))
	return c.Counter.Count(text)
}

// Each segment costs what it takes between its neighbours, also when one comes in at an end.
func TestTokensOfJoinedSegments(t *testing.T) {
	// Pieces has a token for three bytes of a piece, and takes ".\n\n" and ".\n" as one with the '.'.
	base := segment(prompt.BaseInstructions, "Go.")                // "Go", "."
	early := custom("early", "\n.", at(1), worth(2))               // "\n", "."
	late := custom("late", "界", at(60), worth(3))                  // "界"
	between := custom("between", "x", at(20), worth(1))            // "x"
	nothing := custom("nothing", "yyyyyyyyyyyyy", at(2), worth(0)) // five tokens, and does not fit
	req := request(budget.Unlimited(), budget.Of(20), base, early, late, between, nothing)
	req.Counter = testcounter.Pieces{}
	plan, err := newPlan(req)
	if err != nil {
		t.Fatal(err)
	}
	// "\n", ".\n\n", "---\n\n", "Go", ".\n\n", "---\n\n", "x", "\n\n", "---\n\n", "界"
	if want := "\n.\n\n---\n\nGo.\n\n---\n\nx\n\n---\n\n界"; plan.Prompt != want {
		t.Errorf("prompt %q, want %q", plan.Prompt, want)
	}
	if want := 1 + 1 + 2 + 1 + 1 + 2 + 1 + 1 + 2 + 1; plan.UsedTokens != want {
		t.Errorf("%d tokens, want %d", plan.UsedTokens, want)
	}
	var details []string
	for _, d := range plan.Decisions {
		if d.Reason != prompt.Required {
			details = append(details, fmt.Sprint(d.Tokens, " ", d.Detail))
		}
	}
	want := []string{
		"2 fits: with it the prompt takes 20 chars and 9 tokens",
		"5 with it the prompt would take 21 tokens, more than max_tokens 20",
		"1 fits: with it the prompt takes 28 chars and 13 tokens",
		"1 fits: with it the prompt takes 11 chars and 5 tokens",
	}
	if diff := cmp.Diff(want, details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

// With an additive counter the number of texts that are counted grows with that of the segments, not
// with its square; what chars reject is not among them.
func TestWhatIsCounted(t *testing.T) {
	const n = 200
	var segments []prompt.Segment
	for i := range n {
		segments = append(segments, custom(fmt.Sprintf("%03d", i*7%n), "word", worth(int32(-i))))
	}
	segments = append(segments, custom("huge", "HUGE"+strings.Repeat("x", 5000)), custom("blank", " "))
	counter := &tally{Counter: testcounter.Pieces{}}
	req := request(budget.Of(4000), budget.Of(500), segments...)
	req.Counter = counter
	if _, err := newPlan(req); err != nil {
		t.Fatal(err)
	}
	if len(counter.asked) > 4*n+1 {
		t.Errorf("%d texts were counted for %d segments", len(counter.asked), n)
	}
	for _, text := range counter.asked {
		if len(text) > len("---\n\nword\n\n---\n\n") {
			t.Errorf("%q was counted", text)
		}
	}

	counter = &tally{Counter: testcounter.Blocks{}}
	req.Counter = counter
	if _, err := newPlan(req); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(counter.asked, func(text string) bool { return strings.Contains(text, "HUGE") }) {
		t.Error("a counter that is not additive got what chars reject")
	}
	counter.asked, req.MaxTokens = nil, budget.Unlimited()
	if _, err := newPlan(req); err != nil {
		t.Fatal(err)
	}
	if len(counter.asked) > n+1 {
		t.Errorf("%d texts were counted for %d segments and no budget", len(counter.asked), n)
	}
}

func TestCharsRejectBeforeAnythingIsCounted(t *testing.T) {
	counter := &tally{Counter: testcounter.Merges{}}
	req := request(budget.Of(3), budget.Of(3), segment(prompt.BaseInstructions, "Base"))
	req.Counter = counter
	if _, err := newPlan(req); err == nil || len(counter.asked) > 0 {
		t.Errorf("%v, and %q was counted", err, counter.asked)
	}
}

func TestPlanEndsWithItsContext(t *testing.T) {
	req := request(budget.Unlimited(), budget.Unlimited(), segment(prompt.BaseInstructions, "Base"))
	for i := range 100 {
		req.Segments = append(req.Segments, custom(fmt.Sprint(i), "text"))
	}
	for _, counter := range []tokens.Counter{testcounter.Pieces{}, testcounter.Blocks{}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ending := &tally{Counter: &cancelling{counter, 20, cancel}}
		req.Counter = ending
		if plan, err := prompt.New(ctx, req); plan != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v, want no plan and context.Canceled", plan, err)
		}
		if len(ending.asked) > 25 {
			t.Errorf("%d texts were counted, the context ended after 20", len(ending.asked))
		}
	}
}

// cancelling is a counter at whose n-th text a context ends.
type cancelling struct {
	tokens.Counter
	n      int
	cancel func()
}

func (c *cancelling) Count(text []byte) int {
	if c.n--; c.n == 0 {
		c.cancel()
	}
	return c.Counter.Count(text)
}
