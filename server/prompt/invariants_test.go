package prompt_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/prompt"
)

func TestPlanIsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { isTheReference(t, drawRequest(t)) })
}

func TestPlanInvariants(t *testing.T) {
	rapid.Check(t, keepsItsPromises)
}

// Run it with -fuzzminimizetime=1x: a draw is long, and to minimise it would take most of the time.
func FuzzPlan(f *testing.F) {
	for seed := range byte(32) {
		draws := make([]byte, 8192)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(draws) // never fails
		f.Add(draws)
	}
	f.Fuzz(rapid.MakeFuzz(keepsItsPromises))
}

func keepsItsPromises(t *rapid.T) {
	req := drawRequest(t)
	sent := slices.Clone(req.Segments)
	plan, err := newPlan(req)
	if diff := cmp.Diff(sent, req.Segments); diff != "" {
		t.Fatalf("the request was changed:\n%s", diff)
	}
	isTheReference(t, req)
	if err != nil {
		return
	}
	keepsBudgets(t, req, plan)
	decidesOnEach(t, req, plan)
	ignoresTheOrderOfSegments(t, req, plan)
	ignoresWhatIsNotPlaced(t, req, plan)
	drawsNoBoundary(t, req)
}

func isTheReference(t *rapid.T, req prompt.Request) {
	plan, err := newPlan(req)
	wantPlan, wantErr := reference(req)
	if diff := cmp.Diff(wantErr, err); diff != "" {
		t.Fatalf("error (-reference +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantPlan, plan, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(prompt.Decision{}, "Detail")); diff != "" {
		t.Fatalf("plan (-reference +got):\n%s", diff)
	}
}

func keepsBudgets(t *rapid.T, req prompt.Request, plan *prompt.Plan) {
	if got := utf8.RuneCountInString(plan.Prompt); got != plan.UsedChars {
		t.Fatalf("%d chars are said to be used, the prompt has %d", plan.UsedChars, got)
	}
	if got := req.Counter.Count([]byte(plan.Prompt)); got != plan.UsedTokens {
		t.Fatalf("%d tokens are said to be used, the prompt has %d", plan.UsedTokens, got)
	}
	if over(req.MaxChars, plan.UsedChars) || over(req.MaxTokens, plan.UsedTokens) {
		t.Fatalf("%d chars and %d tokens are used of %+v and %+v", plan.UsedChars, plan.UsedTokens, req.MaxChars, req.MaxTokens)
	}
}

// decidesOnEach holds that every segment is included, dropped or inactive, once, and why.
func decidesOnEach(t *rapid.T, req prompt.Request, plan *prompt.Plan) {
	decided := make([]int, len(req.Segments))
	for _, d := range plan.Decisions {
		decided[d.Segment]++
		s := req.Segments[d.Segment]
		blank := strings.TrimSpace(s.Text) == ""
		switch {
		case reasonNames[d.Reason] == "", d.Detail == "",
			blank != (d.Reason == prompt.EmptyContent),
			(s.Required && !blank) != (d.Reason == prompt.Required),
			d.Reason.Included() != (d.RenderedChars > 0),
			d.Reason == prompt.Required && d.RenderedChars != d.OriginalChars,
			d.Reason == prompt.Required && !strings.Contains(plan.Prompt, s.Text),
			d.Reason == prompt.CharBudgetExceeded && req.MaxChars.Unlimited,
			d.Reason == prompt.TokenBudgetExceeded && req.MaxTokens.Unlimited:
			t.Fatalf("%s for %+v: %+v", reasonNames[d.Reason], s, d)
		}
	}
	if slices.ContainsFunc(decided, func(n int) bool { return n != 1 }) {
		t.Fatalf("decisions on each segment: %v", decided)
	}
}

func ignoresTheOrderOfSegments(t *rapid.T, req prompt.Request, plan *prompt.Plan) {
	shuffled := req
	shuffled.Segments = rapid.Permutation(req.Segments).Draw(t, "shuffled")
	got, err := newPlan(shuffled)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byName(req, plan), byName(shuffled, got)); diff != "" {
		t.Fatalf("plan (-sent +shuffled):\n%s", diff)
	}
}

// byName is a plan whose decisions name segments by name.
func byName(req prompt.Request, plan *prompt.Plan) any {
	type decision struct {
		Name string
		prompt.Decision
	}
	var decisions []decision
	for _, d := range plan.Decisions {
		named := decision{req.Segments[d.Segment].Name, d}
		named.Segment = 0
		decisions = append(decisions, named)
	}
	nameless := *plan
	nameless.Decisions = nil
	return struct {
		Plan      prompt.Plan
		Decisions []decision
	}{nameless, decisions}
}

// ignoresWhatIsNotPlaced holds that without a segment that was dropped or inactive, the prompt and
// all other decisions are the same.
func ignoresWhatIsNotPlaced(t *rapid.T, req prompt.Request, plan *prompt.Plan) {
	for i, d := range plan.Decisions {
		if d.Reason.Included() {
			continue
		}
		without := req
		without.Segments = slices.Delete(slices.Clone(req.Segments), d.Segment, d.Segment+1)
		got, err := newPlan(without)
		if err != nil {
			t.Fatal(err)
		}
		want := *plan
		want.Decisions = slices.Delete(slices.Clone(plan.Decisions), i, i+1)
		if diff := cmp.Diff(byName(req, &want), byName(without, got)); diff != "" {
			t.Fatalf("without %s, %s (-with +without):\n%s", req.Segments[d.Segment].Name, reasonNames[d.Reason], diff)
		}
	}
}

// drawsNoBoundary holds that in a prompt of optional segments alone, memory aside, the only
// boundaries are those of the planner, and no memory tag is there.
func drawsNoBoundary(t *rapid.T, req prompt.Request) {
	req.Segments = slices.DeleteFunc(slices.Clone(req.Segments), func(s prompt.Segment) bool { return s.Kind == prompt.RecalledMemory })
	for i := range req.Segments {
		req.Segments[i].Required = false
	}
	plan, err := newPlan(req)
	if err != nil {
		t.Fatal(err)
	}
	included := 0
	for _, d := range plan.Decisions {
		if d.Reason.Included() {
			included++
		}
	}
	if got := len(boundary.FindAllString(plan.Prompt, -1)); got != max(included-1, 0) {
		t.Fatalf("%d segments have %d boundaries between them:\n%q", included, got, plan.Prompt)
	}
	if included > 0 && len(strings.Split(plan.Prompt, prompt.Separator)) != included {
		t.Fatalf("the prompt does not split into its %d segments:\n%q", included, plan.Prompt)
	}
	if tag := memoryTag.FindString(plan.Prompt); tag != "" {
		t.Fatalf("%q is in the prompt:\n%q", tag, plan.Prompt)
	}
}
