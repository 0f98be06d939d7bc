// Package text says what the contract means by a character, a blank text and the start of a line.
// All strings are valid UTF-8.
package text

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode"
)

// Chars returns the number of Unicode code points in s.
func Chars(s string) int {
	const high = 0x8080808080808080
	b := []byte(s)
	n := len(b)
	for ; len(b) >= 32; b = b[32:] {
		w, x := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		y, z := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		if (w|x|y|z)&high == 0 {
			continue // all ASCII
		}
		for _, word := range [...]uint64{w, x, y, z} {
			n -= bits.OnesCount64(word & (^word << 1) & high) // continuation bytes are 10xxxxxx
		}
	}
	for _, c := range b {
		if c&0xC0 == 0x80 {
			n--
		}
	}
	return n
}

// Blank reports whether s is empty or only White_Space (the Unicode property).
func Blank(s string) bool {
	return strings.IndexFunc(s, notSpace) < 0
}

func notSpace(r rune) bool { return !unicode.IsSpace(r) }

// AfterLineBreak reports whether the byte at i follows a line break of s: \n, \r, \v, \f, U+0085,
// U+2028 or U+2029. The start of s follows none.
func AfterLineBreak(s string, i int) bool {
	switch {
	case i == 0:
		return false
	case s[i-1] >= '\n' && s[i-1] <= '\r':
		return true
	default:
		s = s[:i]
		return strings.HasSuffix(s, "\u0085") || strings.HasSuffix(s, "\u2028") || strings.HasSuffix(s, "\u2029")
	}
}
