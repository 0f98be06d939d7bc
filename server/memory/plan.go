package memory

// Plan is which memories enter the prompt, and the decision on every candidate.
type Plan struct {
	// Context is the rendered memories, or empty if none was selected.
	Context string
	// UsedChars and UsedTokens are the code points and the tokens of Context.
	UsedChars, UsedTokens int
	// Selected are the ids of the memories in Context, in its order.
	Selected []string
	// Rejected are the ids of all others, in pipeline order.
	Rejected []string
	// Decisions has one entry for each candidate, in pipeline order.
	Decisions []Decision
}

// Decision says why one memory was selected or rejected.
type Decision struct {
	// Candidate is the memory's index in the request.
	Candidate int
	// Reason is the rule that decided.
	Reason Reason
	// Chars are the code points of the memory's own line, rendered as if it were the only one.
	Chars int
	// Counted reports whether the memory's line was handed to the token counter, which then found
	// Tokens.
	Counted bool
	Tokens  int
	// Position is the place in the context, from 1; 0 if the memory is not in it.
	Position int
	// Winner is the index in the request of the memory that this one lost to; -1 if to none.
	Winner int
	// NormalizedConflictKey is the slot in the form that is compared; empty if there is none.
	NormalizedConflictKey string
	// Detail is one sentence for people. It quotes neither memory text nor a foreign scope.
	Detail string
}

// Reason is the rule that decided on a memory.
type Reason uint8

// The reasons, in the order in which the rules apply; the zero value is no decision yet.
const (
	undecided Reason = iota
	ScopeMismatch
	LowConfidence
	DuplicateContent
	AuthorityLoser
	ConflictLoser
	TopKReached
	CharBudgetExceeded
	TokenBudgetExceeded
	Selected
)

var reasonNames = [...]string{
	undecided:           "undecided",
	ScopeMismatch:       "scope_mismatch",
	LowConfidence:       "low_confidence",
	DuplicateContent:    "duplicate_content",
	AuthorityLoser:      "authority_loser",
	ConflictLoser:       "conflict_loser",
	TopKReached:         "top_k_reached",
	CharBudgetExceeded:  "char_budget_exceeded",
	TokenBudgetExceeded: "token_budget_exceeded",
	Selected:            "selected",
}

// String returns the reason's name, such as "low_confidence".
func (r Reason) String() string { return reasonNames[r] }
