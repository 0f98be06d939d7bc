package split

// words cuts as
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// does: cl100k_base, Llama 3, and with other numbers and words its successors.
type words struct {
	*classTable
	numbers int   // code points of a piece of numbers
	word    class // what words are made of: letters, or marks as well
}

func (words) Covers() bool { return true }

// Seam: a piece that holds a line break ends with line breaks or, where only white space follows, with
// it; the next piece starts at the '<' or '-'. A '"' is in a piece of other characters, which the space
// ends. Up to there no rule looks further than that next character.
func (words) Seam(Seam) Effect { return Cuts }

func (s words) Next(text []byte) int {
	c, n := s.at(text)
	switch {
	case c&s.word != 0:
		return s.run(text, n, s.word)
	case c&number != 0:
		return s.upTo(s.numbers-1, text, n, number)
	case isBreak(text[0]):
		return s.blank(text, true)
	}
	if end := contraction(text, 0, true); end > 0 {
		return end
	}
	next, size := s.at(text[n:])
	if next&s.word != 0 {
		return s.run(text, n+size, s.word)
	}
	other := s.word | number | space
	if c&space == 0 || text[0] == ' ' && size > 0 && next&other == 0 {
		return breaks(text, s.runWithout(text, n, other))
	}
	return s.blank(text, true)
}
