package memory

import (
	"encoding/binary"
	"strings"

	"github.com/promptassembly/promptassembly/server/internal/text"
)

// appendText appends a memory's text as XML character data that cannot draw a segment boundary.
func appendText(dst []byte, s string) []byte {
	done := 0
	for i := 0; i < len(s); {
		end := len(s)
		if end-i >= 8 {
			end = i + 8
			if plainWord(load(s[i:])) {
				i = end
				continue
			}
		}
		for ; i < end; i++ {
			replacement, size := escape(s, i)
			if size == 0 {
				continue
			}
			dst = append(dst, s[done:i]...)
			dst = append(dst, replacement...)
			done = i + size
		}
	}
	return append(dst, s[done:]...)
}

// escape returns what the size bytes at i are rendered as; a size of 0 is one byte as it is.
func escape(s string, i int) (replacement string, size int) {
	switch c := s[i]; {
	case c == '&':
		return "&amp;", 1
	case c == '<':
		return "&lt;", 1
	case c == '>':
		return "&gt;", 1
	case c == '-' && strings.HasPrefix(s[i:], boundary) && text.AfterLineBreak(s, i):
		return "&#45;", 1
	case c < ' ' && c != '\t' && c != '\n' && c != '\r':
		return "\uFFFD", 1
	case c == 0xEF && (strings.HasPrefix(s[i:], "\uFFFE") || strings.HasPrefix(s[i:], "\uFFFF")):
		return "\uFFFD", len("\uFFFE")
	default:
		return "", 0
	}
}

// boundary draws a segment boundary where it starts a line. A text's first line follows a tag.
const boundary = "---"

// textChars returns the code points that appendText appends.
func textChars(s string) int {
	n := text.Chars(s) + strings.Count(s, "&")*(len("&amp;")-1) +
		strings.Count(s, "<")*(len("&lt;")-1) + strings.Count(s, ">")*(len("&gt;")-1)
	for i := strings.Index(s, boundary); i >= 0; {
		if text.AfterLineBreak(s, i) {
			n += len("&#45;") - 1
		}
		for i < len(s) && s[i] == '-' { // the rest of this row follows no line break
			i++
		}
		next := strings.Index(s[i:], boundary)
		if next < 0 {
			break
		}
		i += next
	}
	return n
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// load returns the first eight bytes of s.
func load(s string) uint64 { return binary.LittleEndian.Uint64([]byte(s[:8])) }

// plainWord reports whether eight bytes are rendered as they are: no '&', '<', '>', '-', control
// character, nor the start of U+FFFE. It may say no to others, which then are looked at singly.
func plainWord(x uint64) bool {
	low := x &^ highBits
	plain := low + (0x80-' ')*eachByte                           // no control character
	plain &= (low ^ '&'*eachByte) + 0x7F*eachByte                // the high bit stays clear where equal
	plain &= (low ^ '-'*eachByte) + 0x7F*eachByte                //
	plain &= ((low | 2*eachByte) ^ '>'*eachByte) + 0x7F*eachByte // '<' is '>' without that bit
	lead := x ^ 0xEF*eachByte
	return (plain|x)&highBits == highBits && (lead-eachByte)&^lead&highBits == 0
}
