package memory_test

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
)

func TestDefaultPolicy(t *testing.T) {
	want := memory.Policy{
		MinScore:  0.35,
		TopK:      5,
		MaxChars:  budget.Budget{Limit: 3000},
		MaxTokens: budget.Budget{Limit: 800},
		Winner:    memory.BestEvidence,
		Rendering: memory.Full,
	}
	if got := memory.DefaultPolicy(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestZeroPolicySelectsNothing(t *testing.T) {
	runStageTests(t, []stageTest{{
		candidates: []memory.Candidate{recalled("m", "a", 1)},
		want:       []string{"m TOP_K_REACHED"},
	}})
}
