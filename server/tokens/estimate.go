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
	previous := byte(spaceByte)
	for i := 0; i < len(text); {
		class := classes[text[i]]
		if class == wideByte {
			r, size := utf8.DecodeRune(text[i:])
			if !unicode.IsSpace(r) {
				n++
			}
			previous = wideByte
			i += size
			continue
		}
		// A word counts where it starts, any other byte that is no space counts by itself.
		if class == otherByte || class == wordByte && previous != wordByte {
			n++
		}
		previous = class
		i++
	}
	return n
}

// The classes of a byte of UTF-8.
const (
	spaceByte = iota
	wordByte
	otherByte
	wideByte // part of a code point beyond ASCII
)

var classes = func() (c [256]byte) {
	for b := range c {
		switch r := rune(b); {
		case b >= utf8.RuneSelf:
			c[b] = wideByte
		case unicode.IsSpace(r):
			c[b] = spaceByte
		case b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z':
			c[b] = wordByte
		default:
			c[b] = otherByte
		}
	}
	return c
}()
