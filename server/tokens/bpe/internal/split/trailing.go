package split

// trailing cuts out the white space at the ends of lines, as \s+$ does. There a line ends before a "\n"
// or where the text does, and the longest white space is taken.
type trailing struct{ *classTable }

func (trailing) Covers() bool { return false }

// Seam: what is at a text's end depends on where it ends.
func (trailing) Seam(Seam) Effect { return Spoils }

func (s trailing) Next(text []byte) int {
	end := 0 // of what is not cut out
	for end < len(text) {
		white, lineEnd := s.white(text[end:])
		switch {
		case lineEnd == 0:
			end += max(white, 1)
		case end == 0:
			return lineEnd
		default:
			return end
		}
	}
	return end
}

// white returns where the white space that text starts with ends, and where in it, but not at its
// start, the last end of a line is; 0 if there is none.
func (s trailing) white(text []byte) (end, lineEnd int) {
	for end < len(text) {
		if text[end] == '\n' {
			lineEnd = end
		}
		c, size := s.at(text[end:])
		if c&space == 0 {
			return end, lineEnd
		}
		end += size
	}
	return end, end
}
