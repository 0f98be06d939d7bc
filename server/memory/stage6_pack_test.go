package memory_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// compact renders a context of the scope u-1 with 66 chars and 19 tokens for the tags and, for each
// memory up to the ninth, 32 chars and 12 tokens beside its text.
func compact(topK uint32, chars, tokens budget.Budget) memory.Policy {
	return memory.Policy{TopK: topK, MaxChars: chars, MaxTokens: tokens, Rendering: memory.Compact}
}

func TestPack(t *testing.T) {
	unlimited := budget.Unlimited()
	long := strings.Repeat("y", 300)
	chars := []memory.Candidate{
		recalled("m1", "Short one", 0.9),
		recalled("m2", long, 0.8),
		recalled("m3", "Third", 0.7),
		recalled("m4", "Fourth", 0.6),
	}
	words := slices.Clone(chars)
	words[1].Text = strings.Repeat("y ", 300)
	two := []memory.Candidate{recalled("m1", "a", 0.9), recalled("m2", "b", 0.8)}
	ten := make([]memory.Candidate, 10)
	for i := range ten {
		ten[i] = recalled(string(rune('a'+i)), string(rune('a'+i)), 0.9)
	}
	allBut := func(last string) []string {
		return []string{
			"a SELECTED", "b SELECTED", "c SELECTED", "d SELECTED", "e SELECTED",
			"f SELECTED", "g SELECTED", "h SELECTED", "i SELECTED", last,
		}
	}

	runStageTests(t, []stageTest{
		{
			name:       "chars: what is too long is skipped, a limit is inclusive",
			policy:     compact(3, budget.Of(66+3*32+9+5+6), unlimited),
			candidates: chars,
			want:       []string{"m1 SELECTED", "m2 CHAR_BUDGET_EXCEEDED", "m3 SELECTED", "m4 SELECTED"},
		},
		{
			name:       "chars: one less",
			policy:     compact(3, budget.Of(66+3*32+9+5+6-1), unlimited),
			candidates: chars,
			want:       []string{"m1 SELECTED", "m2 CHAR_BUDGET_EXCEEDED", "m3 SELECTED", "m4 CHAR_BUDGET_EXCEEDED"},
		},
		{
			name:       "chars: less than one memory",
			policy:     compact(3, budget.Of(66+32+1-1), unlimited),
			candidates: two,
			want:       []string{"m1 CHAR_BUDGET_EXCEEDED", "m2 CHAR_BUDGET_EXCEEDED"},
		},
		{
			name:       "tokens: what is too long is skipped, a limit is inclusive",
			policy:     compact(3, unlimited, budget.Of(19+3*12+2+1+1)),
			candidates: words,
			want:       []string{"m1 SELECTED", "m2 TOKEN_BUDGET_EXCEEDED", "m3 SELECTED", "m4 SELECTED"},
		},
		{
			name:       "tokens: one less",
			policy:     compact(3, unlimited, budget.Of(19+3*12+2+1+1-1)),
			candidates: words,
			want:       []string{"m1 SELECTED", "m2 TOKEN_BUDGET_EXCEEDED", "m3 SELECTED", "m4 TOKEN_BUDGET_EXCEEDED"},
		},
		{
			name:       "chars are looked at before tokens",
			policy:     compact(3, budget.Of(200), budget.Of(50)),
			candidates: words,
			want:       []string{"m1 SELECTED", "m2 CHAR_BUDGET_EXCEEDED", "m3 SELECTED", "m4 TOKEN_BUDGET_EXCEEDED"},
		},
		{
			name:       "places are looked at before chars",
			policy:     compact(1, budget.Of(200), budget.Of(50)),
			candidates: words,
			want:       []string{"m1 SELECTED", "m2 TOP_K_REACHED", "m3 TOP_K_REACHED", "m4 TOP_K_REACHED"},
		},
		{
			name:       "the tenth place is a char longer, in its line and in the opening tag",
			policy:     compact(10, budget.Of(67+9*33+34), unlimited),
			candidates: ten,
			want:       allBut("j SELECTED"),
		},
		{
			name:       "the tenth place does not fit",
			policy:     compact(10, budget.Of(67+9*33+34-1), unlimited),
			candidates: ten,
			want:       allBut("j CHAR_BUDGET_EXCEEDED"),
		},
		{
			name:       "no place",
			policy:     compact(0, unlimited, unlimited),
			candidates: two,
			want:       []string{"m1 TOP_K_REACHED", "m2 TOP_K_REACHED"},
		},
		{
			name:       "no chars",
			policy:     compact(5, budget.Of(0), unlimited),
			candidates: two,
			want:       []string{"m1 CHAR_BUDGET_EXCEEDED", "m2 CHAR_BUDGET_EXCEEDED"},
		},
		{
			name:       "no tokens",
			policy:     compact(5, unlimited, budget.Of(0)),
			candidates: two,
			want:       []string{"m1 TOKEN_BUDGET_EXCEEDED", "m2 TOKEN_BUDGET_EXCEEDED"},
		},
		{
			name:       "the most places there can be",
			policy:     compact(1<<32-1, unlimited, unlimited),
			candidates: two,
			want:       []string{"m1 SELECTED", "m2 SELECTED"},
		},
	})
}

func TestPackReportsWhatItUsed(t *testing.T) {
	req := request(compact(2, budget.Of(150), budget.Of(45)), // m3 would make 46 tokens
		recalled("m1", "界", 0.9),
		recalled("m2", strings.Repeat("很", 67), 0.8),
		recalled("m3", "a b", 0.7),
		recalled("m4", "c", 0.6),
		recalled("m5", "d", 0.5),
	)
	want := &memory.Plan{
		Context: `<recalled_memory user_scope="u-1" selected="2">
<memory_hit n="1">界</memory_hit>
<memory_hit n="2">c</memory_hit>
</recalled_memory>`,
		UsedChars:  66 + 2*33,
		UsedTokens: 19 + 2*13,
		Selected:   []string{"m1", "m4"},
		Rejected:   []string{"m2", "m3", "m5"},
		Decisions: []memory.Decision{
			{Candidate: 0, Reason: memory.Selected, Chars: 32, Counted: true, Tokens: 13, Position: 1, Winner: -1},
			{Candidate: 1, Reason: memory.CharBudgetExceeded, Chars: 31 + 67, Winner: -1},
			{Candidate: 2, Reason: memory.TokenBudgetExceeded, Chars: 34, Counted: true, Tokens: 14, Winner: -1},
			{Candidate: 3, Reason: memory.Selected, Chars: 32, Counted: true, Tokens: 13, Position: 2, Winner: -1},
			{Candidate: 4, Reason: memory.TopKReached, Chars: 32, Winner: -1},
		},
	}
	if diff := cmp.Diff(want, selectFrom(req), ignoreDetail); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// A tally notes what it is asked to count, and counts as the estimate does.
type tally struct {
	tokens.Estimate
	asked []string
}

func (c *tally) Count(text []byte) int {
	c.asked = append(c.asked, string(text))
	return c.Estimate.Count(text)
}

func TestOnlyWhatMayBeSelectedIsCounted(t *testing.T) {
	policy := compact(2, budget.Of(300), budget.Of(60))
	policy.MinScore = 0.3
	counter := new(tally)
	req := request(policy,
		recalled("huge", "HUGE"+strings.Repeat("A", 2_000_000), 1),
		recalled("foreign", "FOREIGN", 0.9, scope("u-2")),
		recalled("first", "first", 0.85, slot("k")),
		recalled("copy", "First", 0.8, slot("k")),
		recalled("loser", "LOSER", 0.75, slot("k")),
		recalled("wordy", strings.Repeat("w ", 40), 0.7),
		recalled("second", "second", 0.6),
		recalled("late", "LATE", 0.5),
		recalled("weak", "WEAK", 0.2),
	)
	req.Counter = counter
	plan := selectFrom(req)

	want := []string{
		"huge CHAR_BUDGET_EXCEEDED", "foreign SCOPE_MISMATCH", "first SELECTED", "copy DUPLICATE_CONTENT first",
		"loser CONFLICT_LOSER first", "wordy TOKEN_BUDGET_EXCEEDED", "second SELECTED", "late TOP_K_REACHED", "weak LOW_CONFIDENCE",
	}
	if diff := cmp.Diff(want, fates(req, plan)); diff != "" {
		t.Fatalf("decisions (-want +got):\n%s", diff)
	}
	var lines []string
	chars := 0
	for _, text := range counter.asked {
		chars += utf8.RuneCountInString(text)
		if strings.HasPrefix(text, "<memory_hit ") {
			lines = append(lines, text)
		}
	}
	wantLines := []string{
		"<memory_hit n=\"1\">first</memory_hit>\n",
		"<memory_hit n=\"2\">" + strings.Repeat("w ", 40) + "</memory_hit>\n",
		"<memory_hit n=\"2\">second</memory_hit>\n",
	}
	if diff := cmp.Diff(wantLines, lines); diff != "" {
		t.Errorf("lines handed to the counter (-want +got):\n%s", diff)
	}
	if chars > 1000 {
		t.Errorf("%d chars were counted for a context of %d", chars, plan.UsedChars)
	}
	for _, d := range plan.Decisions {
		if want := d.Reason == memory.Selected || d.Reason == memory.TokenBudgetExceeded; d.Counted != want || (d.Tokens > 0) != want {
			t.Errorf("%s: counted %t, %d tokens", reasonNames[d.Reason], d.Counted, d.Tokens)
		}
	}
}

// An additive counter gets what changes from query to query and what does not as texts of their own.
func TestTextsThatAreCounted(t *testing.T) {
	captured := memory.Provenance{SourceID: "s", SourceType: "t", CapturedAt: instant("2025-05-01T12:00:00Z")}
	for _, tt := range []struct {
		name      string
		rendering memory.Rendering
		authority memory.Authority
		from      memory.Provenance
		want      []string
	}{
		{
			"full", memory.Full, memory.UserDefault, captured,
			[]string{
				`<memory_hit memory_id="m1" authority="user_default" score="0.9" source_rank="1"`,
				` source_id="s" source_type="t" captured_at="2025-05-01T12:00:00Z"> captured="</memory_hit>` + "\n",
			},
		},
		{
			"compact", memory.Compact, memory.CurrentTurn, captured,
			[]string{`<memory_hit n="1"`, ` captured="2025-05-01" authority="current_turn"> captured="</memory_hit>` + "\n"},
		},
		{
			"compact, undated", memory.Compact, memory.CurrentTurn,
			memory.Provenance{},
			[]string{`<memory_hit n="1"`, ` authority="current_turn"> captured="</memory_hit>` + "\n"},
		},
		{
			"compact, with a place alone", memory.Compact, memory.UserDefault,
			memory.Provenance{},
			[]string{`<memory_hit n="1"> captured="</memory_hit>` + "\n"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			counter := new(tally)
			m := recalled("m1", ` captured="`, 0.9)
			m.Authority, m.Provenance = tt.authority, tt.from
			req := request(memory.Policy{TopK: 1, MaxChars: budget.Unlimited(), MaxTokens: budget.Unlimited(), Rendering: tt.rendering}, m)
			req.Counter = counter
			plan := selectFrom(req)
			want := append([]string{`<recalled_memory user_scope="u-1"`, "</recalled_memory>"}, tt.want...)
			want = append(want, " selected=\"1\">\n")
			if diff := cmp.Diff(want, counter.asked); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			if whole := counter.Estimate.Count([]byte(plan.Context)); plan.UsedTokens != whole {
				t.Errorf("%d tokens used, the context has %d", plan.UsedTokens, whole)
			}
		})
	}
}
