package observe

import (
	"context"
	"encoding/hex"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Call is what is observed of one call. The goroutine that answers the call fills it; a nil *Call
// takes what it is told and forgets it.
type Call struct {
	method        method
	compression   string // of the request, as its header names it
	traceID       string // from the caller's header; empty: none
	requestBytes  int
	responseBytes int

	queryID, scope string
	identity       identity.Identity
	granted        struct{ issuer, digest string } // of the grant that is carried
	unidentified   struct{ source, check string }  // why there is none; empty: there was nothing to check
	memory         memoryCounts
	segments       segmentCounts
	budgets        []utilisation
}

// The number of decisions by reason. Index 0 is UNSPECIFIED, which no decision has.
type (
	memoryCounts  [pb.MemoryDecisionReason_MEMORY_DECISION_REASON_SELECTED + 1]int
	segmentCounts [pb.SegmentDecisionReason_SEGMENT_DECISION_REASON_EMPTY_CONTENT + 1]int
)

// utilisation is the used part of a budget.
type utilisation struct {
	budget string
	ratio  float64
}

type callKey struct{}

// From returns the call that ctx belongs to, or nil.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Compression returns the name of the request's compression; empty or "identity" is none.
func (c *Call) Compression() string {
	if c == nil {
		return ""
	}
	return c.compression
}

// Request notes the identifiers of a request. They must be valid, or empty.
func (c *Call) Request(queryID, scope string) {
	if c != nil {
		c.queryID, c.scope = queryID, scope
	}
}

// Identity notes who calls.
func (c *Call) Identity(id identity.Identity) {
	if c != nil {
		c.identity = id
	}
}

// Granted notes the grant that is carried: whose it is, and the digest of what was signed.
func (c *Call) Granted(issuer string, digest [32]byte) {
	if c != nil {
		c.granted.issuer, c.granted.digest = issuer, hex.EncodeToString(digest[:])
	}
}

// Unidentified notes which identity, or grant, did not hold, and which check failed: fixed words.
func (c *Call) Unidentified(source, check string) {
	if c != nil {
		c.unidentified.source, c.unidentified.check = source, check
	}
}

// Memory notes the decisions of a selection.
func (c *Call) Memory(plan *pb.MemoryContextPlan) {
	if c == nil || plan == nil {
		return
	}
	for _, d := range plan.GetDecisions() {
		c.memory[d.GetReason()]++
	}
	c.budget("memory_chars", plan.GetUsedChars(), plan.GetPolicy().GetMaxChars())
	c.budget("memory_tokens", plan.GetUsedTokens(), plan.GetPolicy().GetMaxTokens())
}

// Prompt notes the decisions of a planned prompt.
func (c *Call) Prompt(plan *pb.PromptPlan) {
	if c == nil || plan == nil {
		return
	}
	for _, d := range plan.GetDecisions() {
		c.segments[d.GetReason()]++
	}
	c.budget("prompt_chars", plan.GetUsedChars(), plan.GetMaxChars())
	c.budget("prompt_tokens", plan.GetUsedTokens(), plan.GetMaxTokens())
}

// budget notes how much of a budget is used; one without a limit, or of 0, has no such ratio.
func (c *Call) budget(name string, used uint32, of *pb.Budget) {
	if limit := of.GetLimit(); limit > 0 {
		c.budgets = append(c.budgets, utilisation{name, float64(used) / float64(limit)})
	}
}
