package split

// deepSeek cuts as
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
//	 ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// does: the last of the three expressions of DeepSeek V3. What none of it matches, numbers and
// control characters, is a piece up to the next match.
type deepSeek struct{ *classTable }

func (deepSeek) Covers() bool { return false }

// Seam as for words.
func (deepSeek) Seam(Seam) Effect { return Cuts }

const (
	wordOrMark = letter | mark
	sign       = punct | symbol
)

func (s deepSeek) Next(text []byte) int {
	c, n := s.at(text)
	if c&wordOrMark != 0 {
		return s.run(text, n, wordOrMark)
	}
	if c&sign != 0 {
		if n == 1 && len(text) > 1 && isLatin(text[1]) {
			end := 2
			for end < len(text) && isLatin(text[end]) {
				end++
			}
			return end
		}
		return breaks(text, s.run(text, n, sign))
	}
	if isBreak(text[0]) {
		return s.blank(text, true)
	}
	next, size := s.at(text[n:])
	switch {
	case next&wordOrMark != 0:
		return s.run(text, n+size, wordOrMark)
	case text[0] == ' ' && next&sign != 0:
		return breaks(text, s.run(text, n+size, sign))
	case c&space != 0:
		return s.blank(text, true)
	}
	for n < len(text) {
		c, size := s.at(text[n:])
		if c&(wordOrMark|sign|space) != 0 {
			break
		}
		if next, _ := s.at(text[n+size:]); next&wordOrMark != 0 {
			break
		}
		n += size
	}
	return n
}

func isLatin(b byte) bool { return 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' }
