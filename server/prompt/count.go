package prompt

// An additive counter has a seam in every separator: what it counts on one side does not depend on
// the other. So each segment costs what stands between two seams, and that depends on nothing but
// whether there is a segment before it, and one after it. What is counted behind a seam only because
// the text before it could not be counted without, is taken off again:
//
//	the only one  Count(text)
//	the first     Count(text + Separator) - Count(afterSeam)
//	in between    Count(afterSeam + text + Separator) - Count(afterSeam)
//	the last      Count(afterSeam + text)

// afterSeam is what of a Separator stands behind its seam.
const afterSeam = "---\n\n"

// role is what a segment has beside it in the prompt.
type role uint8

const (
	follows  role = 1 << iota // there is a segment before it
	precedes                  // there is one after it
	roles
)

// cost returns the tokens that a segment costs in that role. It counts them once.
func (p *planner) cost(s *piece, r role) int {
	if known := s.costs[r]; known > 0 {
		return known - 1
	}
	p.buf = p.buf[:0]
	if r&follows != 0 {
		p.buf = append(p.buf, afterSeam...)
	}
	p.buf = append(p.buf, s.placed...)
	n := 0
	if r&precedes != 0 {
		p.buf = append(p.buf, Separator...)
		n -= p.afterSeam
	}
	n += p.Counter.Count(p.buf)
	s.costs[r] = n + 1
	return n
}

// beside returns the role that a segment would have in the prompt, and the one whose role it would
// change, to what: the first or the last so far, if it came before or after that.
func (p *planner) beside(s *piece) (r role, end *piece, becomes role) {
	switch {
	case p.first == nil:
		return 0, nil, 0
	case s.place < p.first.place:
		return precedes, p.first, p.first.role | follows
	case s.place > p.last.place:
		return follows, p.last, p.last.role | precedes
	default:
		return follows | precedes, nil, 0
	}
}

// tokensWith returns the tokens of the prompt with one more segment, as it would be joined then. If
// they decide nothing and would take long to count, it returns 0.
func (p *planner) tokensWith(s *piece) int {
	if !p.additive {
		if p.MaxTokens.Unlimited {
			return 0
		}
		return p.whole(s)
	}
	r, end, becomes := p.beside(s)
	n := p.tokens + p.cost(s, r)
	if end != nil {
		n += p.cost(end, becomes) - p.cost(end, end.role)
	}
	return n
}

// whole counts the prompt with one more segment, or none, as a whole.
func (p *planner) whole(more *piece) int {
	p.buf = p.buf[:0]
	for i := range p.pieces {
		s := &p.pieces[i]
		if !s.Reason.Included() && s != more {
			continue
		}
		if len(p.buf) > 0 {
			p.buf = append(p.buf, Separator...)
		}
		p.buf = append(p.buf, s.placed...)
	}
	return p.Counter.Count(p.buf)
}
