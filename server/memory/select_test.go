package memory_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/memory"
)

func TestSelectIsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { isTheReference(t, drawRequest(t)) })
}

func TestSelectInvariants(t *testing.T) {
	rapid.Check(t, keepsItsPromises)
}

// Run it with -fuzzminimizetime=1x: a draw is long, and to minimise it would take most of the time.
func FuzzSelect(f *testing.F) {
	for seed := range byte(32) {
		draws := make([]byte, 8192)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(draws) // never fails
		f.Add(draws)
	}
	f.Fuzz(rapid.MakeFuzz(keepsItsPromises))
}

func keepsItsPromises(t *rapid.T) {
	req := drawRequest(t)
	sent := slices.Clone(req.Candidates)
	plan := selectFrom(req)
	if diff := cmp.Diff(sent, req.Candidates); diff != "" {
		t.Fatalf("the request was changed:\n%s", diff)
	}

	keepsBudgets(t, req, plan)
	decidesOnEach(t, req, plan)
	namesWinners(t, req, plan)
	parses(t, req, plan)
	showsNothingForeign(t, plan)
	ignoresTheOrderOfCandidates(t, req, plan)
	isTheReference(t, req)
}

func isTheReference(t *rapid.T, req memory.Request) {
	if diff := cmp.Diff(reference(req), selectFrom(req), cmpopts.EquateEmpty(), ignoreDetail); diff != "" {
		t.Fatalf("plan (-reference +got):\n%s", diff)
	}
}

// selectFrom selects for as long as it takes.
func selectFrom(req memory.Request) *memory.Plan {
	plan, err := memory.Select(context.Background(), req)
	if err != nil {
		panic(err)
	}
	return plan
}

func keepsBudgets(t *rapid.T, req memory.Request, plan *memory.Plan) {
	if got := utf8.RuneCountInString(plan.Context); got != plan.UsedChars {
		t.Fatalf("%d chars are said to be used, the context has %d", plan.UsedChars, got)
	}
	if got := req.Counter.Count([]byte(plan.Context)); got != plan.UsedTokens {
		t.Fatalf("%d tokens are said to be used, the context has %d", plan.UsedTokens, got)
	}
	if b := req.Policy.MaxChars; !b.Unlimited && uint64(plan.UsedChars) > uint64(b.Limit) {
		t.Fatalf("%d chars are used of %d", plan.UsedChars, b.Limit)
	}
	if b := req.Policy.MaxTokens; !b.Unlimited && uint64(plan.UsedTokens) > uint64(b.Limit) {
		t.Fatalf("%d tokens are used of %d", plan.UsedTokens, b.Limit)
	}
	if uint64(len(plan.Selected)) > uint64(req.Policy.TopK) {
		t.Fatalf("%d places are filled of %d", len(plan.Selected), req.Policy.TopK)
	}
}

// decidesOnEach holds that there is one decision a candidate, and that the two lists of ids follow
// the decisions.
func decidesOnEach(t *rapid.T, req memory.Request, plan *memory.Plan) {
	decided := make([]int, len(req.Candidates))
	var selected, rejected []string
	for _, d := range plan.Decisions {
		decided[d.Candidate]++
		id := req.Candidates[d.Candidate].ID
		if d.Reason == memory.Selected {
			selected = append(selected, id)
			if d.Position != len(selected) {
				t.Fatalf("%s is at place %d, want %d", id, d.Position, len(selected))
			}
			continue
		}
		rejected = append(rejected, id)
		if d.Position != 0 || reasonNames[d.Reason] == "" {
			t.Fatalf("%s was rejected for reason %d, at place %d", id, d.Reason, d.Position)
		}
	}
	if slices.ContainsFunc(decided, func(n int) bool { return n != 1 }) {
		t.Fatalf("decisions on each candidate: %v", decided)
	}
	if !slices.Equal(selected, plan.Selected) || !slices.Equal(rejected, plan.Rejected) {
		t.Fatalf("selected %q and rejected %q, the decisions say %q and %q", plan.Selected, plan.Rejected, selected, rejected)
	}
}

func namesWinners(t *rapid.T, req memory.Request, plan *memory.Plan) {
	decisions := make(map[int]memory.Decision)
	for _, d := range plan.Decisions {
		decisions[d.Candidate] = d
	}
	for i, d := range decisions {
		lost := d.Reason == memory.DuplicateContent || d.Reason == memory.AuthorityLoser || d.Reason == memory.ConflictLoser
		if lost != (d.Winner >= 0) {
			t.Fatalf("%s, winner %d", reasonNames[d.Reason], d.Winner)
		}
		if !lost {
			continue
		}
		w, loser, winner := decisions[d.Winner], req.Candidates[i], req.Candidates[d.Winner]
		switch {
		case d.Winner == i, winner.Scope != req.Scope, winner.Score < req.Policy.MinScore, winner.Authority < loser.Authority:
			t.Fatalf("%+v cannot have lost to %+v", loser, winner)
		case d.NormalizedConflictKey != w.NormalizedConflictKey:
			t.Fatalf("slot %q lost to slot %q", d.NormalizedConflictKey, w.NormalizedConflictKey)
		case d.Reason == memory.DuplicateContent && (w.Reason == memory.DuplicateContent || normalized(loser.Text) != normalized(winner.Text)):
			t.Fatalf("%q is said to be a duplicate of %q: %s", loser.Text, winner.Text, reasonNames[w.Reason])
		case d.Reason != memory.DuplicateContent && w.Winner >= 0:
			t.Fatalf("%q lost its slot to a loser, %q: %s", loser.ID, winner.ID, reasonNames[w.Reason])
		case (d.Reason == memory.AuthorityLoser) != (d.Reason != memory.DuplicateContent && loser.Authority < winner.Authority):
			t.Fatalf("%v lost to %v: %s", loser.Authority, winner.Authority, reasonNames[d.Reason])
		}
	}
}

type memoryBlock struct {
	XMLName  xml.Name `xml:"recalled_memory"`
	Scope    string   `xml:"user_scope,attr"`
	Selected int      `xml:"selected,attr"`
	Hits     []struct {
		Place  int    `xml:"n,attr"`
		ID     string `xml:"memory_id,attr"`
		Source string `xml:"source_id,attr"`
		Title  string `xml:"title,attr"`
		Slot   string `xml:"conflict_key,attr"`
		Text   string `xml:",chardata"`
		Inner  []any  `xml:",any"`
	} `xml:"memory_hit"`
	Others []any `xml:",any"`
}

// parses holds that the context is XML with exactly the selected memories, whose texts come back as
// they were sent.
func parses(t *rapid.T, req memory.Request, plan *memory.Plan) {
	if len(plan.Selected) == 0 {
		if plan.Context != "" {
			t.Fatalf("nothing is selected, but the context is %q", plan.Context)
		}
		return
	}
	var block memoryBlock
	if err := xml.Unmarshal([]byte(plan.Context), &block); err != nil {
		t.Fatalf("the context does not parse: %v\n%s", err, plan.Context)
	}
	if block.Scope != req.Scope || block.Selected != len(plan.Selected) || len(block.Hits) != len(plan.Selected) || len(block.Others) > 0 {
		t.Fatalf("of scope %q, %d memories are said to be selected, and %d are in the context with %d other elements:\n%s",
			block.Scope, block.Selected, len(block.Hits), len(block.Others), plan.Context)
	}
	for i, id := range plan.Selected {
		hit := block.Hits[i]
		c := req.Candidates[slices.IndexFunc(req.Candidates, func(c memory.Candidate) bool { return c.ID == id })]
		if hit.Text != asParsed(c.Text) || len(hit.Inner) > 0 {
			t.Fatalf("text %q came back as %q with %d elements", c.Text, hit.Text, len(hit.Inner))
		}
		if req.Policy.Rendering == memory.Compact {
			if hit.Place != i+1 {
				t.Fatalf("memory %d has the place %d", i+1, hit.Place)
			}
		} else if hit.ID != id || hit.Source != c.Provenance.SourceID || hit.Title != c.Provenance.Title || hit.Slot != c.ConflictKey {
			t.Fatalf("%+v came back as %+v", c, hit)
		}
	}
}

// asParsed is what a parser makes of a text: XML knows one line end.
func asParsed(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		if forbidden(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

func showsNothingForeign(t *rapid.T, plan *memory.Plan) {
	if strings.Contains(plan.Context, foreignMark) {
		t.Fatalf("the context holds a text of another scope:\n%s", plan.Context)
	}
	for _, d := range plan.Decisions {
		if strings.Contains(d.Detail, foreignMark) {
			t.Fatalf("a sentence holds a text of another scope: %s", d.Detail)
		}
	}
}

func ignoresTheOrderOfCandidates(t *rapid.T, req memory.Request, plan *memory.Plan) {
	shuffled := req
	shuffled.Candidates = rapid.Permutation(req.Candidates).Draw(t, "shuffled")
	if diff := cmp.Diff(byID(req, plan), byID(shuffled, selectFrom(shuffled))); diff != "" {
		t.Fatalf("plan (-sent +shuffled):\n%s", diff)
	}
}

// byID is a plan whose decisions name candidates by id.
func byID(req memory.Request, plan *memory.Plan) any {
	type decision struct {
		ID, Winner string
		memory.Decision
	}
	var decisions []decision
	for _, d := range plan.Decisions {
		named := decision{ID: req.Candidates[d.Candidate].ID, Decision: d}
		if d.Winner >= 0 {
			named.Winner = req.Candidates[d.Winner].ID
		}
		named.Candidate, named.Decision.Winner = 0, 0
		decisions = append(decisions, named)
	}
	nameless := *plan
	nameless.Decisions = nil
	return struct {
		Plan      memory.Plan
		Decisions []decision
	}{nameless, decisions}
}

func TestPlansShareNothing(t *testing.T) {
	var plans []*memory.Plan
	var printed []string
	rapid.Check(t, func(t *rapid.T) {
		plan := selectFrom(drawRequest(t))
		plans, printed = append(plans, plan), append(printed, fmt.Sprint(*plan))
	})
	for i, plan := range plans {
		if got := fmt.Sprint(*plan); got != printed[i] {
			t.Errorf("a plan was\n%s\nand is, after others were made,\n%s", printed[i], got)
		}
	}
}

func TestSelectSideBySide(t *testing.T) {
	requests := rapid.SliceOfN(rapid.Custom(drawRequest), 20, 20).Example(1)
	want := make([]*memory.Plan, len(requests))
	for i, req := range requests {
		want[i] = selectFrom(req)
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for n := range 10 * len(requests) {
				i := (n*(worker+1) + worker) % len(requests)
				if diff := cmp.Diff(want[i], selectFrom(requests[i])); diff != "" {
					t.Errorf("plan (-alone +side by side):\n%s", diff)
					return
				}
			}
		})
	}
	group.Wait()
}
