package split

// cases cuts as
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// does: o200k_base, and with other numbers and without contractions Mistral's Tekken.
type cases struct {
	*classTable
	numbers      int // code points of a piece of numbers
	contractions bool
}

func (cases) Covers() bool { return true }

// Seam as for words; that a '/' may follow the line breaks matters to neither side.
func (cases) Seam(Seam) Effect { return Cuts }

func (s cases) Next(text []byte) int {
	c, n := s.at(text)
	switch {
	case c&(letter|mark) != 0:
		return s.word(text, 0)
	case c&number != 0:
		return s.upTo(s.numbers-1, text, n, number)
	case isBreak(text[0]):
		return s.blank(text, true)
	}
	next, size := s.at(text[n:])
	const other = letter | number | space
	switch {
	case next&(letter|mark) != 0:
		return s.word(text, n)
	case c&space == 0 || text[0] == ' ' && size > 0 && next&other == 0:
		end := s.runWithout(text, n, other)
		for end < len(text) && (isBreak(text[end]) || text[end] == '/') {
			end++
		}
		return end
	}
	return s.blank(text, true)
}

// word returns where the word that starts at text[i] ends: letters that are not lower case, then
// those that are not upper case. Letters without case, and marks, are both, so that where no lower
// case follows the word ends behind the last of them.
func (s cases) word(text []byte, i int) int {
	end, both := i, 0
	for {
		c, size := s.at(text[end:])
		if c&(upper|plain|mark) == 0 {
			break
		}
		end += size
		if c&upper == 0 {
			both = end
		}
	}
	if c, size := s.at(text[end:]); c&lower != 0 {
		end = s.run(text, end+size, lower|plain|mark)
	} else if both > 0 {
		end = both
	}
	if s.contractions {
		end = contraction(text, end, true)
	}
	return end
}
