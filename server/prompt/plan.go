package prompt

import (
	"cmp"
	"context"
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

// New plans the prompt. It fails with an *EmptyError or a *BudgetError, as there is no prompt without
// a required segment, or with ctx.Err() if ctx ends first: the longest texts can take seconds to count.
func New(ctx context.Context, req Request) (*Plan, error) {
	p := newPlanner(ctx, req)
	if err := p.skipBlank(); err != nil {
		return nil, err
	}
	if err := p.placeRequired(); err != nil {
		return nil, err
	}
	p.tryOptional()
	plan := p.plan()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return plan, nil
}

// planner holds the segments in the prompt's order, and what the included ones take.
type planner struct {
	Request
	ctx           context.Context // once it has ended, what is left to plan does not matter
	pieces        []piece
	first, last   *piece // of the included ones; nil: none is
	chars, tokens int
	additive      bool
	afterSeam     int    // tokens of afterSeam, for an additive counter
	buf           []byte // a text on its way to the counter
}

// piece is a segment with what becomes of it.
type piece struct {
	segment *Segment
	Decision
	place  int    // in the prompt's order
	placed string // the text as it would be placed
	role   role
	costs  [roles]int // tokens by role, plus 1; 0: not counted yet
}

func newPlanner(ctx context.Context, req Request) *planner {
	p := &planner{Request: req, ctx: ctx, additive: req.Counter.Additive(), pieces: make([]piece, len(req.Segments))}
	for i := range req.Segments {
		s := &req.Segments[i]
		p.pieces[i] = piece{segment: s, Decision: Decision{Segment: i, OriginalChars: text.Chars(s.Text)}}
	}
	slices.SortFunc(p.pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.segment.Priority, b.segment.Priority), cmp.Compare(a.segment.Name, b.segment.Name))
	})
	for i := range p.pieces {
		p.pieces[i].place = i
	}
	if p.additive {
		p.afterSeam = req.Counter.Count([]byte(afterSeam))
	}
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
	var required []*piece
	var names []string
	for i := range p.pieces {
		s := &p.pieces[i]
		if !s.segment.Required || s.Reason != undecided {
			continue
		}
		s.placed = s.segment.Text
		p.chars = p.charsWith(s.OriginalChars)
		p.include(s, Required)
		s.Detail = "required: its room is reserved before any optional segment is tried"
		required, names = append(required, s), append(names, s.segment.Name)
	}
	if !p.MaxChars.Fits(p.chars) {
		return &BudgetError{Needed: p.chars, Limit: p.MaxChars.Limit, Unit: "chars", Segments: names}
	}
	for _, s := range required {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		p.measure(s)
		if p.additive {
			p.tokens += p.cost(s, s.role)
		}
	}
	if !p.additive && !p.MaxTokens.Unlimited {
		p.tokens = p.whole(nil)
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
		if p.ctx.Err() != nil {
			return
		}
		p.measure(s)
		tokens := p.tokensWith(s)
		if !p.MaxTokens.Fits(tokens) {
			s.Reason = TokenBudgetExceeded
			s.Detail = exceeds(tokens, "tokens", p.MaxTokens)
			continue
		}
		p.chars, p.tokens = chars, tokens
		p.include(s, FitsBudget)
		s.Detail = "fits: with it the prompt takes " + strconv.Itoa(chars) + " chars"
		if p.additive || !p.MaxTokens.Unlimited {
			s.Detail += " and " + strconv.Itoa(tokens) + " tokens"
		}
	}
}

// include puts the segment into the prompt.
func (p *planner) include(s *piece, reason Reason) {
	s.Reason = reason
	s.RenderedChars = text.Chars(s.placed)
	r, end, becomes := p.beside(s)
	s.role = r
	if end != nil {
		end.role = becomes
	}
	if r&follows == 0 {
		p.first = s
	}
	if r&precedes == 0 {
		p.last = s
	}
}

// charsWith returns the chars of the prompt with one more segment of that many.
func (p *planner) charsWith(chars int) int {
	if p.first != nil {
		chars += len(Separator)
	}
	return p.chars + chars
}

// measure counts the tokens of a segment's placed text into its decision.
func (p *planner) measure(s *piece) {
	s.Counted, s.Tokens = true, p.cost(s, 0)
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
	if !p.additive && p.MaxTokens.Unlimited && p.ctx.Err() == nil {
		plan.UsedTokens = p.Counter.Count([]byte(plan.Prompt))
	}
	return plan
}

func exceeds(needed int, unit string, b budget.Budget) string {
	return "with it the prompt would take " + strconv.Itoa(needed) + " " + unit + ", more than max_" + unit + " " + string(b.Append(nil))
}
