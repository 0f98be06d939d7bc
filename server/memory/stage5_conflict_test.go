package memory_test

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
)

func TestConflict(t *testing.T) {
	one := lenient()
	one.TopK = 1
	short := lenient()
	short.MaxChars = budget.Of(220)
	runStageTests(t, []stageTest{
		{
			name:   "the better match stays, not the newer one",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("old", "Favourite editor is Vim", 0.82, slot("editor"), captured("2024-01-05T00:00:00Z")),
				recalled("new", "Favourite editor is Helix", 0.79, slot("editor"), captured("2025-06-01T00:00:00Z")),
			},
			want: []string{"old SELECTED", "new CONFLICT_LOSER old"},
		},
		{
			name:   "most recent: the newer one stays",
			policy: mostRecent(),
			candidates: []memory.Candidate{
				recalled("old", "Favourite editor is Vim", 0.82, slot("editor"), captured("2024-01-05T00:00:00Z")),
				recalled("new", "Favourite editor is Helix", 0.79, slot("editor"), captured("2025-06-01T00:00:00Z")),
			},
			want: []string{"old CONFLICT_LOSER new", "new SELECTED"},
		},
		{
			name:   "without a slot there is no conflict",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("old", "Favourite editor is Vim", 0.82),
				recalled("new", "Favourite editor is Helix", 0.79),
			},
			want: []string{"old SELECTED", "new SELECTED"},
		},
		{
			name:   "a lower authority is its own reason",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("turn", "a", 0.1, slot("k"), currentTurn),
				recalled("turn-too", "b", 0.05, slot("k"), currentTurn),
				recalled("workspace", "c", 0.9, slot("k"), workspace),
				recalled("user", "d", 1, slot("k")),
			},
			want: []string{"turn SELECTED", "turn-too CONFLICT_LOSER turn", "workspace AUTHORITY_LOSER turn", "user AUTHORITY_LOSER turn"},
		},
		{
			name:   "most recent: authority goes before time, time before score",
			policy: mostRecent(),
			candidates: []memory.Candidate{
				recalled("user", "a", 0.9, slot("k"), captured("2026-01-01T00:00:00Z")),
				recalled("undated", "b", 0.8, slot("k"), workspace),
				recalled("old", "c", 0.7, slot("k"), workspace, captured("2024-01-01T00:00:00Z")),
				recalled("new", "d", 0.6, slot("k"), workspace, captured("2024-01-01T00:00:00.5Z")),
				recalled("twin", "e", 0.5, slot("k"), workspace, captured("2024-01-01T00:00:00.50Z")),
			},
			want: []string{
				"undated CONFLICT_LOSER new", "old CONFLICT_LOSER new", "new SELECTED", "twin CONFLICT_LOSER new", "user AUTHORITY_LOSER new",
			},
		},
		{
			name:   "times decide as instants",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("a", "v1", 0.8, slot("k1"), captured("2025-05-01T12:00:00.1Z")),
				recalled("b", "v2", 0.8, slot("k1"), captured("2025-05-01T12:00:00.15Z")),
				recalled("c", "v1", 0.7, slot("k2"), captured("2025-05-01T12:00:00Z")),
				recalled("d", "v2", 0.7, slot("k2"), captured("2025-05-01T12:00:00.5Z")),
				recalled("f", "v1", 0.6, slot("k3"), captured("2025-05-01T12:00:00.0Z")),
				recalled("e", "v2", 0.6, slot("k3"), captured("2025-05-01T14:00:00+02:00")),
				recalled("g", "v1", 0.5, slot("k4")),
				recalled("h", "v2", 0.5, slot("k4"), captured("0001-01-01T00:00:00Z")),
			},
			want: []string{
				"b SELECTED", "a CONFLICT_LOSER b", "d SELECTED", "c CONFLICT_LOSER d",
				"e SELECTED", "f CONFLICT_LOSER e", "h SELECTED", "g CONFLICT_LOSER h",
			},
		},
		{
			name:   "slots are compared in normalised form",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("m1", "Use TypeScript", 0.6, slot("preference:automation-language")),
				recalled("m2", "Use Ruby", 0.9, slot("Preference：Automation-Language")),
				recalled("m3", "Use Perl", 0.7, slot(" preference:automation-language\u3000")),
				recalled("m4", "Use Lua", 0.5, slot("preference:automation_language")),
			},
			want: []string{"m2 SELECTED", "m3 CONFLICT_LOSER m2", "m1 CONFLICT_LOSER m2", "m4 SELECTED"},
		},
		{
			name:   "a duplicate's winner may lose later",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("best", "a", 0.9, slot("k")),
				recalled("first", "b", 0.8, slot("k")),
				recalled("second", "B", 0.7, slot("k")),
			},
			want: []string{"best SELECTED", "first CONFLICT_LOSER best", "second DUPLICATE_CONTENT first"},
		},
		{
			name:   "a loser does not come back when its winner does not fit",
			policy: short,
			candidates: []memory.Candidate{
				recalled("long", "a very long text, too long for what is left of the budget, which the loser would fit into", 0.9, slot("k")),
				recalled("loser", "b", 0.8, slot("k")),
				recalled("other", "c", 0.7),
			},
			want: []string{"long CHAR_BUDGET_EXCEEDED", "loser CONFLICT_LOSER long", "other SELECTED"},
		},
		{
			name:   "a loser takes no place",
			policy: one,
			candidates: []memory.Candidate{
				recalled("best", "a", 0.9, slot("k")),
				recalled("loser", "b", 0.8, slot("k")),
				recalled("other", "c", 0.7),
			},
			want: []string{"best SELECTED", "loser CONFLICT_LOSER best", "other TOP_K_REACHED"},
		},
	})
}

func TestEveryDecisionShowsTheNormalisedSlot(t *testing.T) {
	plan := selectFrom(request(atLeast(0.5),
		recalled("foreign", "a", 0.9, slot("Ｆoreign  Slot"), scope("u-2")),
		recalled("plain", "b", 0.8, slot("already: plain")),
		recalled("none", "c", 0.7),
		recalled("weak", "d", 0.1, slot(" STRAẞE ")),
	))
	want := []string{"foreign slot", "already: plain", "", "strasse"}
	for i, d := range plan.Decisions {
		if d.NormalizedConflictKey != want[i] {
			t.Errorf("decision %d shows the slot %q, want %q", i, d.NormalizedConflictKey, want[i])
		}
	}
}
