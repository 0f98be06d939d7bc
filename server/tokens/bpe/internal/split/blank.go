package split

// blank returns the length of the piece of white space that text starts with, as
//
//	\s*[\r\n]+|\s+(?!\S)|\s+
//
// cuts it, or without lines as \s+(?!\S)|\s+ does: up to the last line break among the white space if
// there is one, else without the last code point if more text follows.
func (t *classTable) blank(text []byte, lines bool) int {
	end, lastBreak, last := 0, 0, 0
	for end < len(text) {
		c, size := t.at(text[end:])
		if c&space == 0 {
			break
		}
		last = end
		end += size
		if lines && isBreak(text[last]) {
			lastBreak = end
		}
	}
	switch {
	case lastBreak > 0:
		return lastBreak
	case end == len(text) || last == 0:
		return end
	default:
		return last
	}
}

func isBreak(b byte) bool { return b == '\r' || b == '\n' }

// breaks returns where the line breaks that start at text[i] end.
func breaks(text []byte, i int) int {
	for i < len(text) && isBreak(text[i]) {
		i++
	}
	return i
}

// contraction returns where a contraction that starts at text[i] ends, or i: one of
//
//	's|'t|'re|'ve|'m|'ll|'d
//
// with caseless in upper case, too, and with U+017F, the long s, for an s.
func contraction(text []byte, i int, caseless bool) int {
	rest := text[i:]
	if len(rest) < 2 || rest[0] != '\'' {
		return i
	}
	fold := func(b byte) byte {
		if caseless && 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		return b
	}
	switch first := fold(rest[1]); first {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		second := byte('e')
		if first == 'l' {
			second = 'l'
		}
		if len(rest) > 2 && fold(rest[2]) == second {
			return i + 3
		}
	case 0xC5:
		if caseless && len(rest) > 2 && rest[2] == 0xBF {
			return i + 3
		}
	}
	return i
}
