package memory_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
)

func TestDetail(t *testing.T) {
	three := lenient()
	three.TopK = 3
	one := lenient()
	one.TopK = 1
	old, recent := captured("2024-01-05T00:00:00Z"), captured("2025-06-01T12:00:00.5Z")

	for _, tt := range []struct {
		name       string
		policy     memory.Policy
		candidates []memory.Candidate // the sentence is on the one whose id is "m"
		reason     memory.Reason
		says       []string
	}{
		{
			"selected", three,
			[]memory.Candidate{recalled("best", "a", 0.9), recalled("m", "b", 0.123456789, workspace)},
			memory.Selected,
			[]string{"place 1 of at most 3", "workspace_override", "0.123456789"},
		},
		{
			"scope", lenient(),
			[]memory.Candidate{recalled("m", "a", 1, scope("tenant-9"))},
			memory.ScopeMismatch,
			[]string{"scope"},
		},
		{
			"confidence", atLeast(0.35),
			[]memory.Candidate{recalled("m", "a", 0.1)},
			memory.LowConfidence,
			[]string{"0.1 is below min_score 0.35"},
		},
		{
			"confidence, by the last bit", atLeast(0.35),
			[]memory.Candidate{recalled("m", "a", math.Nextafter(0.35, 0))},
			memory.LowConfidence,
			[]string{"0.3499999999999999 is below min_score 0.35"},
		},
		{
			"confidence, in full", atLeast(0.123456789),
			[]memory.Candidate{recalled("m", "a", 0.0000001)},
			memory.LowConfidence,
			[]string{"1e-07 is below min_score 0.123456789"},
		},
		{
			"duplicate", lenient(),
			[]memory.Candidate{recalled("win-7", "a", 0.93, rank(2)), recalled("m", "A", 0.5, rank(4), old)},
			memory.DuplicateContent,
			[]string{"user_default", "0.5", "source_rank 4", "2024-01-05T00:00:00Z", "lost to", "0.93", "source_rank 2", "undated", "win-7", "same text"},
		},
		{
			"duplicate of a higher authority", lenient(),
			[]memory.Candidate{recalled("win-7", "a", 0.5, workspace), recalled("m", "a", 1)},
			memory.DuplicateContent,
			[]string{"user_default lost to workspace_override", "win-7", "same text"},
		},
		{
			"authority", lenient(),
			[]memory.Candidate{recalled("win-7", "a", 0.5, currentTurn, slot("k")), recalled("m", "b", 1, slot("k"))},
			memory.AuthorityLoser,
			[]string{"user_default lost to current_turn", "win-7", "slot"},
		},
		{
			"conflict", lenient(),
			[]memory.Candidate{recalled("win-7", "a", 0.82, slot("k"), old), recalled("m", "b", 0.79, slot("k"), recent)},
			memory.ConflictLoser,
			[]string{"0.79", "2025-06-01T12:00:00.5Z", "lost to", "0.82", "2024-01-05T00:00:00Z", "win-7", "slot"},
		},
		{
			"conflict, by time", mostRecent(),
			[]memory.Candidate{recalled("m", "a", 0.82, slot("k"), old), recalled("win-7", "b", 0.79, slot("k"), recent)},
			memory.ConflictLoser,
			[]string{"captured_at 2024-01-05T00:00:00Z", "lost to", "captured_at 2025-06-01T12:00:00.5Z", "win-7", "slot"},
		},
		{
			"top k", one,
			[]memory.Candidate{recalled("best", "a", 0.9), recalled("m", "b", 0.8)},
			memory.TopKReached,
			[]string{"1", "top_k"},
		},
		{
			"chars", compact(5, budget.Of(98), budget.Of(0)),
			[]memory.Candidate{recalled("m", "a", 0.9)},
			memory.CharBudgetExceeded,
			[]string{"99 chars", "max_chars 98"},
		},
		{
			"tokens", compact(5, budget.Unlimited(), budget.Of(31)),
			[]memory.Candidate{recalled("m", "a", 0.9)},
			memory.TokenBudgetExceeded,
			[]string{"32 tokens", "max_tokens 31"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := request(tt.policy, tt.candidates...)
			for _, d := range selectFrom(req).Decisions {
				if req.Candidates[d.Candidate].ID != "m" {
					continue
				}
				if d.Reason != tt.reason {
					t.Fatalf("%s, want %s", reasonNames[d.Reason], reasonNames[tt.reason])
				}
				rest := d.Detail
				for _, part := range tt.says {
					_, after, found := strings.Cut(rest, part)
					if !found {
						t.Errorf("%q lacks %q, or has it in another place", d.Detail, part)
					}
					rest = after
				}
			}
		})
	}
}

func TestDetailQuotesNoMemoryAndNoForeignScope(t *testing.T) {
	const secret = "\U000F0001secret"
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		for i := range req.Candidates {
			req.Candidates[i].Text = secret + req.Candidates[i].Text
			if req.Candidates[i].Scope != req.Scope {
				req.Candidates[i].Scope += secret
			}
		}
		for _, d := range selectFrom(req).Decisions {
			if d.Detail == "" || strings.Contains(d.Detail, secret) || strings.ContainsAny(d.Detail, "\r\n") {
				t.Fatalf("%s: %q", reasonNames[d.Reason], d.Detail)
			}
		}
	})
}
