package memory_test

import (
	"math"
	"testing"

	"github.com/promptassembly/promptassembly/server/memory"
)

func atLeast(score float64) memory.Policy {
	p := lenient()
	p.MinScore = score
	return p
}

func TestConfidenceGate(t *testing.T) {
	runStageTests(t, []stageTest{
		{
			name:   "is inclusive, and exact to the last bit",
			policy: atLeast(0.35),
			candidates: []memory.Candidate{
				recalled("at", "a", 0.35),
				recalled("under", "b", math.Nextafter(0.35, 0)),
				recalled("over", "c", math.Nextafter(0.35, 1)),
			},
			want: []string{"over SELECTED", "at SELECTED", "under LOW_CONFIDENCE"},
		},
		{
			name:   "zero lets everything in",
			policy: atLeast(0),
			candidates: []memory.Candidate{
				recalled("a", "a", 0),
				recalled("b", "b", math.Copysign(0, -1)),
			},
			want: []string{"a SELECTED", "b SELECTED"},
		},
		{
			name:   "one lets in what is certain",
			policy: atLeast(1),
			candidates: []memory.Candidate{
				recalled("a", "a", 1),
				recalled("b", "b", math.Nextafter(1, 0)),
			},
			want: []string{"a SELECTED", "b LOW_CONFIDENCE"},
		},
		{
			name:   "scores are taken as sent",
			policy: atLeast(0.35),
			candidates: []memory.Candidate{
				recalled("exact", "a", 0.02),
				recalled("near", "b", 0.51),
				recalled("far", "c", 0.78),
			},
			want: []string{"far SELECTED", "near SELECTED", "exact LOW_CONFIDENCE"},
		},
		{
			name:   "authority does not open it",
			policy: atLeast(0.35),
			candidates: []memory.Candidate{
				recalled("loud", "a", 0.3, currentTurn),
				recalled("sure", "b", 0.4),
			},
			want: []string{"loud LOW_CONFIDENCE", "sure SELECTED"},
		},
		{
			name:   "a weak memory is nobody's winner",
			policy: atLeast(0.35),
			candidates: []memory.Candidate{
				recalled("loud", "Use Go", 0.3, slot("language"), currentTurn),
				recalled("copy", "use go", 0.4, slot("language")),
			},
			want: []string{"loud LOW_CONFIDENCE", "copy SELECTED"},
		},
	})
}

func TestNothingSelectedIsTheEmptyContext(t *testing.T) {
	weak := []memory.Candidate{recalled("a", "a", 0.169), recalled("b", "b", 0.186), recalled("c", "c", 0.188)}
	for name, candidates := range map[string][]memory.Candidate{"all below the gate": weak, "none": nil} {
		plan := selectFrom(request(atLeast(0.35), candidates...))
		if plan.Context != "" || plan.UsedChars != 0 || plan.UsedTokens != 0 || len(plan.Selected) != 0 {
			t.Errorf("%s: context %q of %d chars and %d tokens", name, plan.Context, plan.UsedChars, plan.UsedTokens)
		}
		if len(plan.Rejected) != len(candidates) || len(plan.Decisions) != len(candidates) {
			t.Errorf("%s: %d candidates, rejected %v, %d decisions", name, len(candidates), plan.Rejected, len(plan.Decisions))
		}
	}
}
