package split

import (
	"strings"
	"unicode/utf8"
)

// set is code points: those of some classes, and those of ranges.
type set struct {
	*classTable
	classes class
	ranges  [][2]rune
	inASCII [utf8.RuneSelf]bool
}

// has reports whether the code point that text starts with is in the set, and its length in bytes.
func (s *set) has(text []byte) (in bool, size int) {
	if text[0] < utf8.RuneSelf {
		return s.inASCII[text[0]], 1
	}
	r, size := decode(text)
	return s.holds(r), size
}

func (s *set) holds(r rune) bool {
	if s.of(r)&s.classes != 0 {
		return true
	}
	for _, of := range s.ranges {
		if of[0] <= r && r <= of[1] {
			return true
		}
	}
	return false
}

// parseSet reads what an expression starts with, \p{…} or a set in brackets, and returns the rest. It
// knows of sets no more than code points, ranges of them, \r, \n and \p{…}.
func parseSet(t *classTable, expression string) (s *set, rest string, ok bool) {
	s = &set{classTable: t}
	if rest, ok = s.parseClass(expression); !ok {
		if rest, ok = strings.CutPrefix(expression, "["); !ok {
			return nil, "", false
		}
		for first := true; !strings.HasPrefix(rest, "]") || first; first = false {
			if rest, ok = s.parseMember(rest); !ok {
				return nil, "", false
			}
		}
		rest = rest[1:]
	}
	for r := range rune(utf8.RuneSelf) {
		s.inASCII[r] = s.holds(r)
	}
	return s, rest, true
}

// parseMember reads a class, a code point or a range.
func (s *set) parseMember(text string) (rest string, ok bool) {
	if rest, ok := s.parseClass(text); ok {
		return rest, true
	}
	first, rest, ok := parseCodePoint(text)
	if !ok {
		return "", false
	}
	last := first
	if after, ok := strings.CutPrefix(rest, "-"); ok {
		if last, rest, ok = parseCodePoint(after); !ok || last < first {
			return "", false
		}
	}
	s.ranges = append(s.ranges, [2]rune{first, last})
	return rest, true
}

func (s *set) parseClass(text string) (rest string, ok bool) {
	for name, c := range map[string]class{`\p{L}`: letter, `\p{M}`: mark, `\p{N}`: number, `\p{P}`: punct, `\p{S}`: symbol} {
		if rest, ok := strings.CutPrefix(text, name); ok {
			s.classes |= c
			return rest, true
		}
	}
	return "", false
}

// parseCodePoint reads one that means itself, or \r or \n.
func parseCodePoint(text string) (r rune, rest string, ok bool) {
	for escaped, r := range map[string]rune{`\r`: '\r', `\n`: '\n'} {
		if rest, ok := strings.CutPrefix(text, escaped); ok {
			return r, rest, true
		}
	}
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 || strings.ContainsRune(`\[]^-&`, r) {
		return 0, "", false
	}
	return r, text[size:], true
}
