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

// Exact implements Counter: an estimate never is.
func (Estimate) Exact() bool { return false }

// Count implements Counter.
func (Estimate) Count(text []byte) int {
	n := 0
	previous := byte(space)
	for i, c := range text {
		class := classes[c]
		switch class {
		case word:
			if previous != word {
				n++
			}
		case other:
			n++
		case maybeSpace:
			if r, _ := utf8.DecodeRune(text[i:]); !unicode.IsSpace(r) {
				n++
			}
		}
		previous = class
	}
	return n
}

// The classes of a byte of UTF-8.
const (
	space      = iota // or the rest of a code point, which its first byte stood for
	word              // counts where its run starts
	other             // counts by itself, for the rest of its code point too
	maybeSpace        // starts a code point that is perhaps white space
)

var classes = func() (classes [256]byte) {
	for b := range classes {
		r := rune(b)
		switch {
		case b == 0xC2, 0xE1 <= b && b <= 0xE3: // where U+0085 to U+3000 start
			classes[b] = maybeSpace
		case b >= utf8.RuneSelf && !utf8.RuneStart(byte(b)), b < utf8.RuneSelf && unicode.IsSpace(r):
			classes[b] = space
		case b == '_', '0' <= b && b <= '9', 'A' <= b && b <= 'Z', 'a' <= b && b <= 'z':
			classes[b] = word
		default:
			classes[b] = other
		}
	}
	return classes
}()
