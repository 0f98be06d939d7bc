package memory

// pack takes the surviving candidates in order and selects each that fits. A memory is atomic: one
// that does not fit is skipped whole, and smaller ones may still enter. No line is rendered twice: it
// is appended, counted and, if it passes the token budget, cut off again.
func (s *selection) pack() {
	if s.ctx.Err() != nil {
		return
	}
	s.lines = s.lines[:0]
	s.needed = resize(s.needed, len(s.items))
	s.plan.Selected = make([]string, 0, min(uint64(len(s.items)), uint64(s.Policy.TopK)))
	chars := 0 // of the lines that were selected
	tagChars := openingChars(s.Scope) + len(closingTag)
	tokens := s.countTokens()

	for i := range s.plan.Decisions {
		d := &s.plan.Decisions[i]
		if d.Reason != undecided {
			continue
		}
		if uint64(len(s.plan.Selected)) == uint64(s.Policy.TopK) {
			d.Reason = TopKReached
			continue
		}
		if s.ctx.Err() != nil {
			return
		}

		place := len(s.plan.Selected) + 1
		line := d.Chars + 1 // the newline
		if s.Policy.Rendering == Compact {
			line += digits(uint64(place)) - 1 // d.Chars is the line at place 1
		}
		needed := tagChars + digits(uint64(place)) + chars + line
		if !s.Policy.MaxChars.Fits(needed) {
			d.Reason, s.needed[i] = CharBudgetExceeded, needed
			continue
		}

		start := len(s.lines)
		var seam, neededTokens int
		s.lines, seam = appendLine(s.lines, s.candidate(i), s.Policy.Rendering, place)
		d.Counted = true
		d.Tokens, neededTokens = tokens.try(start, seam, place)
		if !s.Policy.MaxTokens.Fits(neededTokens) {
			d.Reason, s.needed[i] = TokenBudgetExceeded, neededTokens
			s.lines = s.lines[:start]
			continue
		}

		d.Reason, d.Position = Selected, place
		chars += line
		tokens.take(d.Tokens, neededTokens)
		s.plan.Selected = append(s.plan.Selected, s.candidate(i).ID)
		s.plan.UsedChars = needed
	}
	s.plan.UsedTokens = tokens.used()
}
