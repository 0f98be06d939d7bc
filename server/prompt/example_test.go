package prompt_test

import (
	"context"
	"fmt"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/prompt"
	"github.com/promptassembly/promptassembly/server/tokens"
)

func ExampleNew() {
	req := prompt.Request{
		Segments: []prompt.Segment{
			{Name: "skills", Kind: prompt.SkillInstructions, Text: "A long manual.", Priority: 20, BudgetPriority: 75},
			{Name: "region", Kind: prompt.RegionalConventions, Text: "UTC+8", Priority: 30, BudgetPriority: 20},
			{Name: "base", Kind: prompt.BaseInstructions, Text: "Be careful.", Priority: 10, Required: true},
		},
		MaxChars:  budget.Of(25),
		MaxTokens: budget.Unlimited(),
		Counter:   tokens.Estimate{},
	}
	plan, err := prompt.New(context.Background(), req)
	if err != nil {
		fmt.Println(err) // a required segment is blank, or they alone exceed a budget
		return
	}
	fmt.Println(plan.Prompt)
	for _, d := range plan.Decisions {
		fmt.Println(req.Segments[d.Segment].Name, d.Reason)
	}
	// Output:
	// Be careful.
	//
	// ---
	//
	// UTC+8
	// base required
	// skills char_budget_exceeded
	// region fits_budget
}
