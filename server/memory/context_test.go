package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

func TestSelectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int{0, 1, 100} {
		req := memory.Request{Scope: "tenant-7/user-42", Candidates: benchCandidates(n), Policy: memory.DefaultPolicy(), Counter: tokens.Estimate{}}
		if plan, err := memory.Select(ctx, req); plan != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%d candidates: %v, %v, want no plan and context.Canceled", n, plan, err)
		}
	}
}

// A run ends in its middle, too: of 1,000 candidates few are packed after the context has ended.
func TestSelectEndsInTheMiddle(t *testing.T) {
	candidates := benchCandidates(1000)
	for i := range candidates {
		candidates[i].Text = fmt.Sprintf("The user prefers %d reports a week", i) // all of one signature
	}
	for looks := range 100 {
		counter := &countingCounter{}
		ctx := &endingContext{Context: t.Context(), looks: looks * 25}
		req := memory.Request{Scope: candidates[0].Scope, Candidates: candidates, Policy: policies[2].policy, Counter: counter}
		plan, err := memory.Select(ctx, req)
		if ended := ctx.looks < 0; ended && (plan != nil || !errors.Is(err, context.Canceled)) || !ended && err != nil {
			t.Fatalf("after %d looks at the context: %v, %v", looks*25, plan, err)
		}
		// Each candidate that is packed takes one look at the context and three counts; the tags take two.
		if counter.texts > 3*looks*25+2 {
			t.Errorf("%d texts were counted within %d looks at the context", counter.texts, looks*25)
		}
	}
}

// endingContext ends when it has been looked at so often.
type endingContext struct {
	context.Context
	looks int
}

func (c *endingContext) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// countingCounter counts the texts that it is given.
type countingCounter struct {
	tokens.Estimate
	texts int
}

func (c *countingCounter) Count(text []byte) int {
	c.texts++
	return c.Estimate.Count(text)
}
