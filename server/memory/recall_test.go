package memory_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/memory"
)

func TestRecallCandidate(t *testing.T) {
	provenance := memory.Provenance{
		SourceID: "chat-1", SourceType: "chat", Title: " A title ", CapturedAt: instant("2025-01-01T00:00:00.5Z"),
	}
	recall := memory.Recall{
		Scope:        "u-1",
		ConflictKeys: map[string]string{"slotted": " Editor ", "empty": ""},
		Authorities:  map[string]memory.Authority{"turn": memory.CurrentTurn, "user": memory.UserDefault},
	}
	for _, tt := range []struct {
		name string
		hit  memory.Hit
		want memory.Candidate
	}{
		{
			"everything is copied as it is",
			memory.Hit{ID: "m", Rank: 7, Snippet: "  Two  words\n", Scope: "u-2", Provenance: provenance, Score: 0.123456789},
			memory.Candidate{ID: "m", SourceRank: 7, Text: "  Two  words\n", Scope: "u-2", Provenance: provenance, Score: 0.123456789},
		},
		{
			"the query's scope is for hits without one",
			memory.Hit{ID: "m"},
			memory.Candidate{ID: "m", Scope: "u-1"},
		},
		{
			"a blank scope is a scope",
			memory.Hit{ID: "m", Scope: " "},
			memory.Candidate{ID: "m", Scope: " "},
		},
		{
			"a slot is copied as it was sent",
			memory.Hit{ID: "slotted"},
			memory.Candidate{ID: "slotted", Scope: "u-1", ConflictKey: " Editor "},
		},
		{
			"an empty slot is none",
			memory.Hit{ID: "empty"},
			memory.Candidate{ID: "empty", Scope: "u-1"},
		},
		{
			"an authority",
			memory.Hit{ID: "turn", Score: 1, Rank: math.MaxUint32},
			memory.Candidate{ID: "turn", Scope: "u-1", Authority: memory.CurrentTurn, Score: 1, SourceRank: math.MaxUint32},
		},
		{
			"an authority that is the default",
			memory.Hit{ID: "user"},
			memory.Candidate{ID: "user", Scope: "u-1", Authority: memory.UserDefault},
		},
		{
			"ids are not normalised",
			memory.Hit{ID: "Slotted"},
			memory.Candidate{ID: "Slotted", Scope: "u-1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, recall.Candidate(tt.hit)); diff != "" {
				t.Errorf("candidate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecallWithoutAnnotations(t *testing.T) {
	got := memory.Recall{}.Candidate(memory.Hit{ID: "m", Scope: "u-1"})
	if want := (memory.Candidate{ID: "m", Scope: "u-1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
