package memory

// tokenCount is the tokens of the context while it is packed. With an additive counter each text is
// counted once: those of the lines that were selected are added up, and only the number of memories
// in the opening tag is counted anew. With any other the whole context is, in every trial.
type tokenCount struct {
	*selection
	additive       bool
	scope, closing int // of the parts of the tags that do not change
	taken          int // of the lines that were selected
	context        int // of the context with them
}

func (s *selection) countTokens() *tokenCount {
	t := &tokenCount{selection: s, additive: s.Counter.Additive()}
	if t.additive {
		s.text = appendScope(s.text[:0], s.Scope)
		t.scope = s.Counter.Count(s.text)
		t.closing = s.Counter.Count(append(s.text[:0], closingTag...))
	}
	return t
}

// try returns the tokens of the last line, which starts at start and has that seam, and those of the
// context with it at that place. Where they decide nothing and would take long to count, the context's
// are 0.
func (t *tokenCount) try(start, seam, place int) (line, context int) {
	if !t.additive {
		line = t.Counter.Count(t.lines[start:])
		if !t.Policy.MaxTokens.Unlimited {
			context = t.whole(place)
		}
		return line, context
	}
	if seam > start {
		line = t.Counter.Count(t.lines[start:seam])
	}
	line += t.Counter.Count(t.lines[seam:])
	t.text = appendSelected(t.text[:0], place)
	return line, t.scope + t.Counter.Count(t.text) + t.taken + line + t.closing
}

// take says that the last line, of which try returned that, is selected.
func (t *tokenCount) take(line, context int) {
	t.taken += line
	t.context = context
}

// used returns the tokens of the context with the lines that were selected.
func (t *tokenCount) used() int {
	selected := len(t.plan.Selected)
	if !t.additive && t.Policy.MaxTokens.Unlimited && selected > 0 {
		return t.whole(selected)
	}
	return t.context
}

// whole counts the context with so many lines, which are all there are.
func (t *tokenCount) whole(lines int) int {
	t.text = appendOpening(t.text[:0], t.Scope, lines)
	t.text = append(t.text, t.lines...)
	t.text = append(t.text, closingTag...)
	return t.Counter.Count(t.text)
}
