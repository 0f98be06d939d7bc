package memory_test

import (
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/memory"
)

func TestDedupe(t *testing.T) {
	runStageTests(t, []stageTest{
		{
			name:   "spellings of one text",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("m1", "Prefers dark roast coffee", 0.8),
				recalled("m2", "prefers  dark roast COFFEE", 0.9),
				recalled("m3", "Ｐrefers dark roast coffee", 0.85),
				recalled("m4", "\u3000Prefers dark\troast\r\ncoffee\u00A0", 0.7),
				recalled("m5", "Works from Lisbon", 0.5),
			},
			want: []string{
				"m2 SELECTED", "m3 DUPLICATE_CONTENT m2", "m1 DUPLICATE_CONTENT m2", "m4 DUPLICATE_CONTENT m2", "m5 SELECTED",
			},
		},
		{
			name:   "full case folding",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("m1", "Straße", 0.9),
				recalled("m2", "STRASSE", 0.8),
				recalled("m3", "STRAẞE", 0.7),
				recalled("m4", "ΟΔΟΣ", 0.6),
				recalled("m5", "οδος", 0.5),
				recalled("m6", "οδοσ", 0.4),
				recalled("m7", "ᏣᎳᎩ", 0.3),
				recalled("m8", "ꮳꮃꭹ", 0.2),
			},
			want: []string{
				"m1 SELECTED", "m2 DUPLICATE_CONTENT m1", "m3 DUPLICATE_CONTENT m1", "m4 SELECTED",
				"m5 DUPLICATE_CONTENT m4", "m6 DUPLICATE_CONTENT m4", "m7 SELECTED", "m8 DUPLICATE_CONTENT m7",
			},
		},
		{
			name:   "compatibility folding joins what looks different",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("m1", "Row quota is 102 here", 0.9),
				recalled("m2", "Row quota is 10² here", 0.8),
				recalled("m3", "ﬁle caf\u00E9", 0.7),
				recalled("m4", "FILE CAFE\u0301", 0.6),
			},
			want: []string{"m1 SELECTED", "m2 DUPLICATE_CONTENT m1", "m3 SELECTED", "m4 DUPLICATE_CONTENT m3"},
		},
		{
			name:   "exact is exact",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("m1", "There are 37 snapshots to restore", 0.9),
				recalled("m2", "There are 15 snapshots to restore", 0.89),
				recalled("m3", "Pin version 2.4", 0.8),
				recalled("m4", "Pin version 2.40", 0.79),
				recalled("m5", "Pin version 2.4.", 0.78),
				recalled("m6", "Use Py\u200Bthon", 0.7),
				recalled("m7", "Use Python", 0.69),
				recalled("m8", "Use\u001CPython", 0.68),
				recalled("m9", "Use Py\u00ADthon", 0.67),
			},
			want: []string{
				"m1 SELECTED", "m2 SELECTED", "m3 SELECTED", "m4 SELECTED", "m5 SELECTED",
				"m6 SELECTED", "m7 SELECTED", "m8 SELECTED", "m9 SELECTED",
			},
		},
		{
			name:   "texts that differ only in their middle, or in where a space stands",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("m1", "The user prefers 3 reports a week", 0.9),
				recalled("m2", "The user prefers 4 reports a week", 0.8),
				recalled("m3", "The user prefers 3 reports aweek", 0.7),
				recalled("m4", "THE USER prefers 4 reports  a week", 0.6),
			},
			want: []string{"m1 SELECTED", "m2 SELECTED", "m3 SELECTED", "m4 DUPLICATE_CONTENT m2"},
		},
		{
			name:   "one text in two slots states two facts",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("a", "Use Python", 0.5, currentTurn, slot("analysis")),
				recalled("b", "Use Python", 0.6, workspace, slot("automation")),
				recalled("c", "Use Bash", 0.95, slot("automation")),
				recalled("d", "use  python", 0.7, slot("Automation")),
			},
			want: []string{"a SELECTED", "b SELECTED", "c AUTHORITY_LOSER b", "d DUPLICATE_CONTENT b"},
		},
		{
			name:   "no slot is only no slot",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("m1", "Use tabs", 0.9),
				recalled("m2", "Use tabs", 0.8, slot("indent")),
				recalled("m3", "Use spaces", 0.7, slot("indent")),
				recalled("m4", "use TABS", 0.6, slot("")),
			},
			want: []string{"m1 SELECTED", "m2 SELECTED", "m3 CONFLICT_LOSER m2", "m4 DUPLICATE_CONTENT m1"},
		},
		{
			name:   "the highest authority stays",
			policy: lenient(),
			candidates: []memory.Candidate{
				recalled("low", "a", 1),
				recalled("high", "a", 0.1, currentTurn),
			},
			want: []string{"high SELECTED", "low DUPLICATE_CONTENT high"},
		},
		{
			name:   "most recent: the latest of the highest authority stays, the order too",
			policy: mostRecent(),
			candidates: []memory.Candidate{
				recalled("undated", "a", 0.95),
				recalled("old", "a", 0.9, captured("2024-01-01T00:00:00Z")),
				recalled("new", "a", 0.5, captured("2025-01-01T00:00:00Z")),
				recalled("twin", "a", 0.4, captured("2025-01-01T00:00:00Z")),
				recalled("other", "b", 0.8),
			},
			want: []string{
				"undated DUPLICATE_CONTENT new", "old DUPLICATE_CONTENT new", "other SELECTED", "new SELECTED", "twin DUPLICATE_CONTENT new",
			},
		},
		{
			name:   "most recent: authority goes before time",
			policy: mostRecent(),
			candidates: []memory.Candidate{
				recalled("new", "a", 0.9, captured("2025-01-01T00:00:00Z")),
				recalled("high", "a", 0.1, workspace),
			},
			want: []string{"high SELECTED", "new DUPLICATE_CONTENT high"},
		},
	})
}

func TestDuplicateDoesNotComeBackWhenItsWinnerDoesNotFit(t *testing.T) {
	// The winner spells the same text with a thousand spaces more.
	short := lenient()
	short.MaxChars.Limit, short.MaxChars.Unlimited = 500, false
	runStageTests(t, []stageTest{{
		policy: short,
		candidates: []memory.Candidate{
			recalled("long", "Use"+strings.Repeat(" ", 1000)+"Go", 0.9),
			recalled("short", "Use Go", 0.8),
		},
		want: []string{"long CHAR_BUDGET_EXCEEDED", "short DUPLICATE_CONTENT long"},
	}})
}

func TestDedupeKeepsTheWinnerAsItWasSent(t *testing.T) {
	plan := selectFrom(request(lenient(),
		recalled("m1", "prefers tea", 0.8, source("chat-1")),
		recalled("m2", "Ｐrefers  TEA", 0.9, source("chat-2")),
	))
	if !strings.Contains(plan.Context, ">Ｐrefers  TEA<") || !strings.Contains(plan.Context, `source_id="chat-2"`) {
		t.Errorf("the context lacks the winner's text or source:\n%s", plan.Context)
	}
	if strings.Contains(plan.Context, "prefers tea") || strings.Contains(plan.Context, "chat-1") {
		t.Errorf("the context holds something of the duplicate:\n%s", plan.Context)
	}
}
