package memory

import "github.com/promptassembly/promptassembly/server/budget"

// Policy says how memories are selected. The zero value selects nothing; start from DefaultPolicy.
type Policy struct {
	// MinScore is the least score that passes the confidence gate, 0 to 1.
	MinScore float64
	// TopK is the most memories that are selected.
	TopK uint32
	// MaxChars is the most code points of the whole context.
	MaxChars budget.Budget
	// MaxTokens is the most tokens of the whole context.
	MaxTokens budget.Budget
	// Winner says which memory of a group of duplicates, or of a slot, stays.
	Winner ConflictWinner
	// Rendering says how a selected memory is rendered.
	Rendering Rendering
}

// DefaultPolicy returns the policy of a request that sets none.
func DefaultPolicy() Policy {
	return Policy{
		MinScore:  0.35,
		TopK:      5,
		MaxChars:  budget.Of(3000),
		MaxTokens: budget.Of(800),
	}
}

// ConflictWinner says which memory of a group stays.
type ConflictWinner uint8

const (
	// BestEvidence keeps the first in pipeline order.
	BestEvidence ConflictWinner = iota
	// MostRecent keeps the highest authority, then the latest captured, then the first in order.
	MostRecent
)

// Rendering says how a selected memory is rendered.
type Rendering uint8

const (
	// Full renders everything that is known of a memory.
	Full Rendering = iota
	// Compact renders its place, its day and its authority above UserDefault.
	Compact
)
