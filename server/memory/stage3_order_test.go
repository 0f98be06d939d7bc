package memory_test

import (
	"math"
	"testing"

	"github.com/promptassembly/promptassembly/server/memory"
)

func TestOrder(t *testing.T) {
	const year1, year9999 = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"
	for _, tt := range []struct {
		name          string
		first, second memory.Candidate
	}{
		{
			"authority goes before score",
			recalled("z", "a", 0, workspace, rank(9)),
			recalled("a", "b", 1, captured(year9999)),
		},
		{
			"the current turn goes before the workspace",
			recalled("z", "a", 0, currentTurn, rank(9)),
			recalled("a", "b", 1, workspace, captured(year9999)),
		},
		{
			"score goes before rank",
			recalled("z", "a", math.Nextafter(0.5, 1), rank(9)),
			recalled("a", "b", 0.5, captured(year9999)),
		},
		{
			"the smallest score goes before none",
			recalled("z", "a", math.SmallestNonzeroFloat64, rank(9)),
			recalled("a", "b", 0),
		},
		{
			"rank goes before time",
			recalled("z", "a", 0.5, rank(9), captured(year1)),
			recalled("a", "b", 0.5, rank(10), captured(year9999)),
		},
		{
			"ranks are unsigned",
			recalled("z", "a", 0.5, rank(math.MaxInt32)),
			recalled("a", "b", 0.5, rank(math.MaxUint32)),
		},
		{
			"the later time goes before the earlier",
			recalled("z", "a", 0.5, captured("2025-01-01T00:00:01Z")),
			recalled("a", "b", 0.5, captured("2025-01-01T00:00:00.999999999Z")),
		},
		{
			"fractions compare as numbers",
			recalled("z", "a", 0.5, captured("2025-05-01T12:00:00.15Z")),
			recalled("a", "b", 0.5, captured("2025-05-01T12:00:00.1Z")),
		},
		{
			"times compare as instants",
			recalled("z", "a", 0.5, captured("2025-05-01T12:00:01Z")),
			recalled("a", "b", 0.5, captured("2025-05-01T14:00:00+02:00")),
		},
		{
			"before the epoch, too",
			recalled("z", "a", 0.5, captured("1969-12-31T23:59:59.5Z")),
			recalled("a", "b", 0.5, captured("1969-12-31T23:59:59.25Z")),
		},
		{
			"the first of all times goes before none",
			recalled("z", "a", 0.5, captured(year1)),
			recalled("a", "b", 0.5),
		},
		{
			"one instant in two zones leaves it to the id",
			recalled("a", "a", 0.5, captured("2025-05-01T14:00:00+02:00")),
			recalled("b", "b", 0.5, captured("2025-05-01T12:00:00Z")),
		},
		{
			"minus zero is zero",
			recalled("a", "a", math.Copysign(0, -1)),
			recalled("b", "b", 0),
		},
		{"ids compare as bytes: digits", recalled("m10", "a", 0.5), recalled("m2", "b", 0.5)},
		{"ids compare as bytes: case", recalled("B", "a", 0.5), recalled("a", "b", 0.5)},
		{"ids compare as bytes: accents", recalled("z", "a", 0.5), recalled("é", "b", 0.5)},
		{"ids compare as bytes: a prefix", recalled("m", "a", 0.5), recalled("m ", "b", 0.5)},
		{"ids compare as bytes: beyond UTF-16", recalled("\uFFFD", "a", 0.5), recalled("\U00010000", "b", 0.5)},
		{"the text plays no part", recalled("a", "z", 0.5), recalled("b", "a", 0.5)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, candidates := range [][]memory.Candidate{{tt.first, tt.second}, {tt.second, tt.first}} {
				plan := selectFrom(request(lenient(), candidates...))
				if plan.Selected[0] != tt.first.ID || plan.Selected[1] != tt.second.ID {
					t.Errorf("selected %q", plan.Selected)
				}
			}
		})
	}
}

func TestRejectsOfTheGatesStandInTheOrder(t *testing.T) {
	runStageTests(t, []stageTest{{
		policy: atLeast(0.35),
		candidates: []memory.Candidate{
			recalled("weak", "a", 0.1),
			recalled("good", "b", 0.8),
			recalled("foreign", "c", 0.9, scope("u-2")),
			recalled("weak-turn", "d", 0.2, currentTurn),
			recalled("best", "e", 0.95),
		},
		want: []string{
			"weak-turn LOW_CONFIDENCE", "best SELECTED", "foreign SCOPE_MISMATCH", "good SELECTED", "weak LOW_CONFIDENCE",
		},
	}})
}
