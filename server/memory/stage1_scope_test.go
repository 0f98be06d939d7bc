package memory_test

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/memory"
)

func TestScopeIsComparedByteForByte(t *testing.T) {
	for _, tt := range []struct{ request, candidate string }{
		{"u-1", "u-10"},
		{"u-10", "u-1"},
		{"u-1", "u-1/archive"},
		{"u-1/archive", "u-1"},
		{"u-1", "U-1"},
		{"u-1", "u-1 "},
		{"u-1", " u-1"},
		{"u-1", "ｕ-1"},
		{"u-1", "u-1\u200B"},
		{"u-1", "u%1"},
		{"u-1", "u-_"},
		{"u-1", "*"},
		{"u-1", ""},
		{"caf\u00E9", "cafe\u0301"},
		{"straße", "strasse"},
		{"a@example.org", "A@example.org"},
	} {
		req := request(lenient(), recalled("m", "text", 1, scope(tt.candidate)))
		req.Scope = tt.request
		plan := selectFrom(req)
		if got := plan.Decisions[0].Reason; got != memory.ScopeMismatch || plan.Context != "" {
			t.Errorf("a memory of %q for %q: %s, context %q", tt.candidate, tt.request, reasonNames[got], plan.Context)
		}
	}
	for _, same := range []string{"u-1", "U-1 ", "café", "a@b/*"} {
		req := request(lenient(), recalled("m", "text", 1, scope(same)))
		req.Scope = same
		if got := selectFrom(req).Decisions[0].Reason; got != memory.Selected {
			t.Errorf("a memory of %q for the same scope: %s", same, reasonNames[got])
		}
	}
}

func TestScopeGate(t *testing.T) {
	strict := lenient()
	strict.MinScore = 0.5
	one := lenient()
	one.TopK = 1
	runStageTests(t, []stageTest{
		{
			name:   "is the first stage",
			policy: strict,
			candidates: []memory.Candidate{
				recalled("foreign", "a", 0.1, scope("u-2")),
				recalled("weak", "b", 0.1),
			},
			want: []string{"foreign SCOPE_MISMATCH", "weak LOW_CONFIDENCE"},
		},
		{
			name:   "a foreign memory is nobody's winner",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("foreign", "Use Go", 1, scope("u-2"), slot("language"), currentTurn),
				recalled("copy", "Use Go", 0.9, slot("language")),
				recalled("rival", "Use C", 0.8, slot("language")),
			},
			want: []string{"foreign SCOPE_MISMATCH", "copy SELECTED", "rival CONFLICT_LOSER copy"},
		},
		{
			name:   "a foreign memory takes no place",
			policy: one,
			candidates: []memory.Candidate{
				recalled("foreign", "a", 1, scope("u-2")),
				recalled("own", "b", 0.5),
			},
			want: []string{"foreign SCOPE_MISMATCH", "own SELECTED"},
		},
	})
}
