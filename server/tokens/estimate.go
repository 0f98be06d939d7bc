package tokens

import (
	"unicode"
	"unicode/utf8"
)

// EstimateName is the name of the default counter.
const EstimateName = "estimate"

// Estimate counts each run of ASCII letters, digits and '_' as one, and every other code point that
// is not White_Space as one.
type Estimate struct{}

var _ Counter = Estimate{}

// Name implements Counter.
func (Estimate) Name() string { return EstimateName }

// Version implements Counter.
func (Estimate) Version() string { return "1" }

// Source implements Counter.
func (Estimate) Source() string { return "built in" }

// Exact implements Counter: an estimate never is.
func (Estimate) Exact() bool { return false }

// Additive implements Counter: only a run of letters, digits and '_' depends on what stands beside
// it, and no seam is within one.
func (Estimate) Additive() bool { return true }

// Count implements Counter. It has no branch on what a byte is, but for the few that are perhaps
// white space: those of a word and its end are as good as random.
func (Estimate) Count(text []byte) int {
	n := 0
	previous := space
	for i, c := range text {
		class := classes[c]
		n += int(counts[previous][class])
		previous = class
		if class == maybeSpace {
			if r, _ := utf8.DecodeRune(text[i:]); unicode.IsSpace(r) {
				n--
			}
		}
	}
	return n
}

// class is what a byte of UTF-8 is to the estimate.
type class uint8

const (
	space      class = iota // or the rest of a code point, which its first byte stood for
	word                    // counts where its run starts
	other                   // counts by itself, for the rest of its code point too
	maybeSpace              // starts a code point that is perhaps white space, else as other
)

// counts says what a byte adds after another one.
var counts = [4][4]uint8{
	space:      {word: 1, other: 1, maybeSpace: 1},
	word:       {other: 1, maybeSpace: 1},
	other:      {word: 1, other: 1, maybeSpace: 1},
	maybeSpace: {word: 1, other: 1, maybeSpace: 1},
}

var classes = func() (classes [256]class) {
	for b := range classes {
		switch {
		case b == 0xC2, 0xE1 <= b && b <= 0xE3: // where U+0085 to U+3000 start
			classes[b] = maybeSpace
		case b&0xC0 == 0x80, b < utf8.RuneSelf && unicode.IsSpace(rune(b)):
			classes[b] = space
		case b == '_', '0' <= b && b <= '9', 'A' <= b && b <= 'Z', 'a' <= b && b <= 'z':
			classes[b] = word
		default:
			classes[b] = other
		}
	}
	return classes
}()
