package split

// gpt2 cuts as
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// does.
type gpt2 struct{ *classTable }

func (gpt2) Covers() bool { return true }

// Seam: white space before a '<' or '-' ends there, as does the '"' before the space. The white space
// in front of a '<' is the one line break after the '>', which is a piece also where the text ends;
// that in front of the '-' is followed by it in both texts of the promise.
func (gpt2) Seam(Seam) Effect { return Cuts }

func (s gpt2) Next(text []byte) int {
	if end := contraction(text, 0, false); end > 0 {
		return end
	}
	n := 0
	c, size := s.at(text)
	if text[0] == ' ' {
		n = 1
		if c, size = s.at(text[1:]); size == 0 {
			return 1
		}
	}
	const other = letter | number | space
	switch {
	case c&letter != 0:
		return s.run(text, n+size, letter)
	case c&number != 0:
		return s.run(text, n+size, number)
	case c&space == 0:
		return s.runWithout(text, n+size, other)
	}
	return s.blank(text, false)
}
