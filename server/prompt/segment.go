// Package prompt plans one prompt: it fits segments into a budget, required ones first, and says of
// each why it was placed or not.
package prompt

import "fmt"

// Kind says what a segment is.
type Kind uint8

// The kinds, in the order in which a prompt holds them by default.
const (
	BaseInstructions Kind = iota
	Identity
	RecalledMemory
	ProjectContext
	ToolDescriptions
	ExpertInstructions
	SkillInstructions
	ConnectorStatus
	RegionalConventions
	WorkingMode
	Custom
)

// Defaults is what a kind gives the segments that do not say otherwise.
type Defaults struct {
	// Name is empty where a segment of the kind must be named.
	Name string
	// Priority is the place in the prompt, lower first.
	Priority int32
	// BudgetPriority is the value under a tight budget, higher first.
	BudgetPriority int32
	// Required segments of such a kind cannot be made optional.
	Required bool
}

var defaults = [...]Defaults{
	BaseInstructions:    {Name: "base", Priority: 10, Required: true},
	Identity:            {Name: "identity", Priority: 20, BudgetPriority: 90},
	RecalledMemory:      {Name: "memory", Priority: 25, BudgetPriority: 60},
	ProjectContext:      {Name: "project", Priority: 30, BudgetPriority: 80},
	ToolDescriptions:    {Name: "tools", Priority: 40, Required: true},
	ExpertInstructions:  {Name: "expert", Priority: 50, BudgetPriority: 85},
	SkillInstructions:   {Name: "skills", Priority: 55, BudgetPriority: 75},
	ConnectorStatus:     {Name: "connectors", Priority: 60, BudgetPriority: 40},
	RegionalConventions: {Name: "region", Priority: 70, BudgetPriority: 20},
	WorkingMode:         {Name: "mode", Priority: 80, Required: true},
	Custom:              {Priority: 50, BudgetPriority: 50},
}

// Defaults returns what the kind gives its segments.
func (k Kind) Defaults() Defaults { return defaults[k] }

// Segment is one piece of a prompt. It enters whole or not at all. All strings are valid UTF-8.
type Segment struct {
	// Name is unique among the segments.
	Name string
	// Kind decides the defaults, and how the text is placed: that of RecalledMemory, which is the
	// context of a memory.Plan, verbatim; that of another optional segment so that it can neither draw
	// a segment boundary nor forge a memory.
	Kind Kind
	// Text may be blank: the segment is then inactive and costs nothing.
	Text string
	// Priority is the place in the prompt: lower first, then by name.
	Priority int32
	// BudgetPriority is the value under a tight budget: optional segments are tried by
	// BudgetPriority, higher first, then by Priority, then by name.
	BudgetPriority int32
	// Required segments are placed before any other is tried, and verbatim.
	Required bool
	// Provenance says where the text came from; it may be empty.
	Provenance string
}

// Plan is one prompt, and the decision on every segment.
type Plan struct {
	// Prompt is the texts of the included segments, joined by Separator.
	Prompt string
	// UsedChars and UsedTokens are the code points and the tokens of Prompt.
	UsedChars, UsedTokens int
	// Decisions has one entry for each segment, by priority and then by name.
	Decisions []Decision
}

// Decision says why one segment was included, dropped or left inactive.
type Decision struct {
	// Segment is the segment's index in the request.
	Segment int
	// Reason is the rule that decided.
	Reason Reason
	// OriginalChars are the code points of the text as sent.
	OriginalChars int
	// RenderedChars are those of the text as placed; 0 if it was not.
	RenderedChars int
	// Counted reports whether the text was handed to the token counter, which then found Tokens.
	Counted bool
	Tokens  int
	// Detail is one sentence for people. It quotes no segment.
	Detail string
}

// Reason is the rule that decided on a segment.
type Reason uint8

// The reasons; the zero value is no decision yet.
const (
	undecided Reason = iota
	// Required and FitsBudget include the segment.
	Required
	FitsBudget
	// CharBudgetExceeded and TokenBudgetExceeded drop it.
	CharBudgetExceeded
	TokenBudgetExceeded
	// EmptyContent leaves it inactive.
	EmptyContent
)

var reasonNames = [...]string{
	undecided:           "undecided",
	Required:            "required",
	FitsBudget:          "fits_budget",
	CharBudgetExceeded:  "char_budget_exceeded",
	TokenBudgetExceeded: "token_budget_exceeded",
	EmptyContent:        "empty_content",
}

// String returns the reason's name, such as "fits_budget".
func (r Reason) String() string { return reasonNames[r] }

// Included reports whether a segment with this reason is in the prompt.
func (r Reason) Included() bool { return r == Required || r == FitsBudget }

// EmptyError reports that a required segment is blank.
type EmptyError struct {
	// Segment is the name of the first such segment, by priority and then by name.
	Segment string
}

func (e *EmptyError) Error() string { return fmt.Sprintf("required segment %q is blank", e.Segment) }

// BudgetError reports that the required segments alone exceed a budget.
type BudgetError struct {
	// Needed is what the required segments take, separators included.
	Needed int
	// Limit is the budget.
	Limit uint32
	// Unit is what is counted: "chars" or "tokens".
	Unit string
	// Segments are the names of the required segments that are not blank, in the prompt's order.
	Segments []string
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("required segments need %d %s, more than %d", e.Needed, e.Unit, e.Limit)
}
