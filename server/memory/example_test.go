package memory_test

import (
	"context"
	"fmt"

	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

func ExampleSelect() {
	policy := memory.DefaultPolicy()
	policy.Rendering = memory.Compact
	req := memory.Request{
		Scope: "user:mei",
		Candidates: []memory.Candidate{
			{
				ID: "python-usual", Text: "Prefers Python for scripts.", Scope: "user:mei", Score: 0.96, SourceRank: 1,
				Provenance:  memory.Provenance{SourceID: "profile-7", SourceType: "profile"},
				ConflictKey: "preference:language",
			},
			{
				ID: "go-this-time", Text: "Please use Go this time.", Scope: "user:mei", Score: 0.72, SourceRank: 2,
				Provenance:  memory.Provenance{SourceID: "turn-42", SourceType: "conversation"},
				ConflictKey: "preference:language", Authority: memory.CurrentTurn,
			},
		},
		Policy:  policy,
		Counter: tokens.Estimate{},
	}
	plan, err := memory.Select(context.Background(), req)
	if err != nil {
		fmt.Println(err) // the context ended first
		return
	}
	fmt.Println(plan.Context)
	for _, d := range plan.Decisions {
		fmt.Println(req.Candidates[d.Candidate].ID, d.Reason)
	}
	// Output:
	// <recalled_memory user_scope="user:mei" selected="1">
	// <memory_hit n="1" authority="current_turn">Please use Go this time.</memory_hit>
	// </recalled_memory>
	// go-this-time selected
	// python-usual authority_loser
}
