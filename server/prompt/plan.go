package prompt

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/internal/text"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// Separator stands between two segments of a prompt; it is ASCII, and its cost counts.
const Separator = "\n\n---\n\n"

// Request asks for one prompt. New trusts it: that names and texts are as the contract's rules demand
// is for the caller to see to, as the service does.
type Request struct {
	// Segments in any order, their names unique. New does not change them.
	Segments []Segment
	// MaxChars and MaxTokens are budgets for the whole prompt.
	MaxChars, MaxTokens budget.Budget
	// Counter counts the tokens.
	Counter tokens.Counter
}

// New plans the prompt. It fails with an *EmptyError or a *BudgetError: there is no prompt without a
// required segment.
func New(req Request) (*Plan, error) {
	p := newPlanner(req)
	if err := p.skipBlank(); err != nil {
		return nil, err
	}
	if err := p.placeRequired(); err != nil {
		return nil, err
	}
	p.tryOptional()
	return p.plan(), nil
}

// planner holds the segments in the prompt's order, and what the included ones take.
type planner struct {
	Request
	pieces          []piece
	separatorTokens int
	included        int
	chars, tokens   int
	buf             []byte // a text on its way to the counter
}

// piece is a segment with what becomes of it.
type piece struct {
	segment *Segment
	Decision
	placed string // the text as it would be placed
}

func newPlanner(req Request) *planner {
	p := &planner{Request: req, pieces: make([]piece, len(req.Segments))}
	for i := range req.Segments {
		s := &req.Segments[i]
		p.pieces[i] = piece{segment: s, Decision: Decision{Segment: i, OriginalChars: text.Chars(s.Text)}}
	}
	slices.SortFunc(p.pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.segment.Priority, b.segment.Priority), cmp.Compare(a.segment.Name, b.segment.Name))
	})
	p.separatorTokens = p.count(Separator)
	return p
}

// skipBlank leaves blank segments inactive. A required one may be blank only if it describes tools:
// without tools there is nothing to describe.
func (p *planner) skipBlank() error {
	for i := range p.pieces {
		s := &p.pieces[i]
		if !text.Blank(s.segment.Text) {
			continue
		}
		if s.segment.Required && s.segment.Kind != ToolDescriptions {
			return &EmptyError{Segment: s.segment.Name}
		}
		s.Reason = EmptyContent
		s.Detail = "there is nothing to place: the body is blank"
		if s.segment.Kind == RecalledMemory {
			s.Detail = "there is nothing to place: no memory was selected"
		}
	}
	return nil
}

// placeRequired includes every required segment, or fails: chars are looked at before tokens.
func (p *planner) placeRequired() error {
	var names []string
	for i := range p.pieces {
		s := &p.pieces[i]
		if !s.segment.Required || s.Reason != undecided {
			continue
		}
		s.placed = s.segment.Text
		p.include(s, Required, p.charsWith(s.OriginalChars), p.tokensWith(p.measure(s)))
		s.Detail = "required: its room is reserved before any optional segment is tried"
		names = append(names, s.segment.Name)
	}
	if !p.MaxChars.Fits(p.chars) {
		return &BudgetError{Needed: p.chars, Limit: p.MaxChars.Limit, Unit: "chars", Segments: names}
	}
	if !p.MaxTokens.Fits(p.tokens) {
		return &BudgetError{Needed: p.tokens, Limit: p.MaxTokens.Limit, Unit: "tokens", Segments: names}
	}
	return nil
}

// tryOptional includes each optional segment that still fits, the most valuable first.
func (p *planner) tryOptional() {
	var optional []*piece
	for i := range p.pieces {
		if p.pieces[i].Reason == undecided {
			optional = append(optional, &p.pieces[i])
		}
	}
	slices.SortStableFunc(optional, func(a, b *piece) int { // the rest of the order is the prompt's
		return cmp.Compare(b.segment.BudgetPriority, a.segment.BudgetPriority)
	})
	for _, s := range optional {
		s.placed = s.segment.Text
		if s.segment.Kind != RecalledMemory {
			s.placed = neutralize(s.segment.Text)
		}
		chars := p.charsWith(text.Chars(s.placed))
		if !p.MaxChars.Fits(chars) {
			s.Reason = CharBudgetExceeded
			s.Detail = exceeds(chars, "chars", p.MaxChars)
			continue
		}
		tokens := p.tokensWith(p.measure(s))
		if !p.MaxTokens.Fits(tokens) {
			s.Reason = TokenBudgetExceeded
			s.Detail = exceeds(tokens, "tokens", p.MaxTokens)
			continue
		}
		p.include(s, FitsBudget, chars, tokens)
		s.Detail = "fits: with it the prompt takes " + strconv.Itoa(chars) + " chars and " + strconv.Itoa(tokens) + " tokens"
	}
}

// include puts the segment into the prompt, which then takes that many chars and tokens.
func (p *planner) include(s *piece, reason Reason, chars, tokens int) {
	s.Reason = reason
	s.RenderedChars = text.Chars(s.placed)
	p.included++
	p.chars, p.tokens = chars, tokens
}

// charsWith returns the chars of the prompt with one more segment of that many.
func (p *planner) charsWith(chars int) int {
	if p.included > 0 {
		chars += len(Separator)
	}
	return p.chars + chars
}

// tokensWith returns the tokens of the prompt with one more segment of that many.
func (p *planner) tokensWith(tokens int) int {
	if p.included > 0 {
		tokens += p.separatorTokens
	}
	return p.tokens + tokens
}

// measure counts the tokens of a segment's placed text into its decision.
func (p *planner) measure(s *piece) int {
	s.Counted, s.Tokens = true, p.count(s.placed)
	return s.Tokens
}

func (p *planner) count(s string) int {
	p.buf = append(p.buf[:0], s...)
	return p.Counter.Count(p.buf)
}

func (p *planner) plan() *Plan {
	plan := &Plan{UsedChars: p.chars, UsedTokens: p.tokens, Decisions: make([]Decision, len(p.pieces))}
	var texts []string
	for i := range p.pieces {
		plan.Decisions[i] = p.pieces[i].Decision
		if p.pieces[i].Reason.Included() {
			texts = append(texts, p.pieces[i].placed)
		}
	}
	plan.Prompt = strings.Join(texts, Separator)
	return plan
}

func exceeds(needed int, unit string, b budget.Budget) string {
	return "with it the prompt would take " + strconv.Itoa(needed) + " " + unit + ", more than max_" + unit + " " + string(b.Append(nil))
}
