//go:build !race

package memory_test

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// The race detector makes sync.Pool forget what it holds.

func TestAllocationsDoNotGrow(t *testing.T) {
	for _, p := range policies {
		for _, n := range []int{10, 5000} {
			candidates := benchCandidates(n)
			for i := range candidates[:n/2] { // some that only the library can normalise
				candidates[i].Text += " cafe\u0301"
				candidates[i].ConflictKey += "cafe\u0301"
			}
			req := memory.Request{Scope: candidates[0].Scope, Candidates: candidates, Policy: p.policy, Counter: tokens.Estimate{}}
			if got := testing.AllocsPerRun(10, func() { selectFrom(req) }); got > 9 {
				t.Errorf("policy %s, %d candidates: %v allocations", p.name, n, got)
			}
		}
	}
}
