package split

import "strings"

// runs cuts out the runs of the code points of a set, as [set]+ does, and what lies between them.
type runs struct {
	*set
	most    int  // code points of a run; 0 is no limit
	leading bool // \s? stands before it: one code point of white space belongs to the run after it
}

func (runs) Covers() bool { return false }

func (s runs) Next(text []byte) int {
	if start, ok := s.starts(text); ok {
		n := start
		for most := s.most; n < len(text); most-- {
			in, size := s.has(text[n:])
			if !in || s.most > 0 && most == 0 {
				break
			}
			n += size
		}
		return n
	}
	_, n := s.at(text)
	for n < len(text) {
		if _, ok := s.starts(text[n:]); ok {
			break
		}
		_, size := s.at(text[n:])
		n += size
	}
	return n
}

// starts reports whether text starts with a run, and where its code points of the set do.
func (s runs) starts(text []byte) (start int, ok bool) {
	in, size := s.has(text)
	if s.leading {
		if c, _ := s.at(text); c&space != 0 && size < len(text) {
			if next, _ := s.has(text[size:]); next {
				return size, true
			}
		}
	}
	return 0, in
}

// Seam: a run ends where only one of the two sides belongs to it. White space that belongs to the run
// after it may be the left side, which spoils the seam, or the space of an attribute, which is cut off
// before it if its name is a run.
func (s runs) Seam(seam Seam) Effect {
	left, _ := s.has([]byte{seam.left()})
	right, _ := s.has([]byte{seam.right()})
	switch {
	case left && right, s.leading && right && seam != Attribute:
		return Spoils
	case left != right:
		return Cuts
	case !s.leading || seam != Attribute:
		return Passes
	}
	names := 0
	for _, b := range []byte(letters) {
		if in, _ := s.has([]byte{b}); in {
			names++
		}
	}
	switch names {
	case 0:
		return Passes
	case len(letters):
		return Cuts
	default:
		return Spoils
	}
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// parseRuns reads an expression of a run: \s? or nothing, a set, and nothing, + or {1,3}.
func parseRuns(t *classTable, expression string) (Splitter, bool) {
	expression, leading := strings.CutPrefix(expression, `\s?`)
	set, rest, ok := parseSet(t, expression)
	if !ok {
		return nil, false
	}
	most, ok := map[string]int{"": 1, "+": 0, "{1,2}": 2, "{1,3}": 3, "{1,4}": 4}[rest]
	return runs{set, most, leading}, ok
}

// digits cuts out the numbers of Unicode 17.0, each by itself or in runs, as the pre-tokeniser of
// this name does.
type digits struct {
	*classTable
	each bool
}

func (digits) Covers() bool { return false }

func (digits) Seam(Seam) Effect { return Passes }

func (s digits) Next(text []byte) int {
	is, n := s.is(text)
	if is && s.each {
		return n
	}
	for n < len(text) {
		same, size := s.is(text[n:])
		if same != is {
			break
		}
		n += size
	}
	return n
}

func (s digits) is(text []byte) (is bool, size int) {
	c, size := s.at(text)
	if size < 4 {
		return c&number != 0, size
	}
	r, _ := decode(text)
	return c&number != 0 || 0x11DE0 <= r && r <= 0x11DE9 || 0x16FF4 <= r && r <= 0x16FF6, size
}
