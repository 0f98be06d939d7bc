package memory

import (
	"encoding/binary"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer brings texts into the form in which they are compared: NFKC, then full case folding,
// then each run of White_Space to one space, then trimmed; once, not to a fixed point.
type normalizer struct {
	composer norm.Iter // kept, as norm.Form.AppendString allocates one a call
	segment  []byte
	signed   []byte
}

// append appends the normalised form of s to dst. The library does the work only where it must:
// most code points can be normalised one by one.
func (n *normalizer) append(dst []byte, s string) []byte {
	if plain, ok := appendPlain(dst, s); ok {
		return plain
	}
	start, afterSpace := len(dst), true
	pending := "" // a plain code point, with which what follows may combine
	for len(s) > 0 {
		end := nextCodePoint(s, 0)
		if startsPlain(s, 0) {
			dst, afterSpace = appendForms(dst, pending, afterSpace)
			pending, s = s[:end], s[end:]
			continue
		}
		for end < len(s) && !startsPlain(s, end) {
			end = nextCodePoint(s, end)
		}
		// Of an expansion only the end combines. The library takes microseconds for some whole ones.
		head, tail := splitLastPlain(expand(pending))
		dst, afterSpace = appendForms(dst, head, afterSpace)
		n.segment = append(append(n.segment[:0], tail...), s[:end]...)
		for n.composer.Init(norm.NFKC, n.segment); !n.composer.Done(); {
			dst, afterSpace = appendForms(dst, string(n.composer.Next()), afterSpace)
		}
		pending, s = "", s[end:]
	}
	dst, afterSpace = appendForms(dst, pending, afterSpace)
	return trimSpace(dst, start, afterSpace)
}

// appendForms appends the normalised form of each code point of s by itself. That is the normalised
// form of s if it is plain, and its folding if it is in NFKC: there each is its own NFKC form.
func appendForms(dst []byte, s string, afterSpace bool) ([]byte, bool) {
	for _, r := range s {
		if r < utf8.RuneSelf {
			dst, afterSpace = appendFold(dst, rune(asciiFolds[r]), afterSpace)
		} else {
			dst, afterSpace = formPageOf(r).append(dst, r, afterSpace)
		}
	}
	return dst, afterSpace
}

// expand returns the NFKC form of the code point s if that is of several code points, else s.
func expand(s string) string {
	if s == "" || s[0] < utf8.RuneSelf {
		return s
	}
	r, _ := utf8.DecodeRuneInString(s)
	if composed := formPageOf(r).composition(r); composed != "" {
		return composed
	}
	return s
}

// splitLastPlain splits s before its last plain code point.
func splitLastPlain(s string) (head, tail string) {
	i := plainUpTo(s, len(s)-1)
	return s[:i], s[i:]
}

// startsPlain reports whether a plain code point starts at i.
func startsPlain(s string, i int) bool {
	if s[i] < utf8.RuneSelf {
		return true
	}
	if !utf8.RuneStart(s[i]) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return formPageOf(r).plain[r%formPageSize]
}

// plainUpTo returns the last index up to i at which a plain code point starts, or the start of s.
func plainUpTo(s string, i int) int {
	for ; i > 0; i-- {
		if startsPlain(s, i) {
			return i
		}
	}
	return 0
}

func nextCodePoint(s string, i int) int {
	_, size := utf8.DecodeRuneInString(s[i:])
	return i + size
}

// appendPlain appends the normalised form of s if all its code points are plain, and reports
// whether they are; if not, what it appended is of no use.
func appendPlain(dst []byte, s string) ([]byte, bool) {
	start := len(dst)
	afterSpace := true // a space here would be a leading one, or the second of a run
	for len(s) > 0 {
		if len(s) >= 8 {
			if word, ok := foldWord(load(s), afterSpace); ok {
				dst = binary.LittleEndian.AppendUint64(dst, word)
				afterSpace = dst[len(dst)-1] == ' '
				s = s[8:]
				continue
			}
		}
		if s[0] < utf8.RuneSelf {
			dst, afterSpace = appendFold(dst, rune(asciiFolds[s[0]]), afterSpace)
			s = s[1:]
			continue
		}
		end := len(s)
		for i, r := range s {
			if r < utf8.RuneSelf {
				end = i
				break
			}
			page := formPageOf(r)
			if !page.plain[r%formPageSize] {
				return dst, false
			}
			dst, afterSpace = page.append(dst, r, afterSpace)
		}
		s = s[end:]
	}
	return trimSpace(dst, start, afterSpace), true
}

// trimSpace cuts off the space in which a text that starts at start ends, if it does.
func trimSpace(dst []byte, start int, afterSpace bool) []byte {
	if afterSpace && len(dst) > start {
		return dst[:len(dst)-1]
	}
	return dst
}

// appendFold appends a folded code point, or a space unless it follows one. It returns whether dst
// now ends in a space, or where one would go.
func appendFold(dst []byte, folded rune, afterSpace bool) ([]byte, bool) {
	if folded != ' ' {
		return utf8.AppendRune(dst, folded), false
	}
	if !afterSpace {
		dst = append(dst, ' ')
	}
	return dst, true
}

// foldWord folds eight bytes at once. It reports false where they are not all ASCII, hold a control
// character, or a space that follows another.
func foldWord(x uint64, afterSpace bool) (uint64, bool) {
	if x&highBits != 0 || (x+(0x80-' ')*eachByte)&highBits != highBits {
		return 0, false
	}
	spaces := ^(x ^ ' '*eachByte + 0x7F*eachByte) & highBits
	if spaces&(spaces<<8) != 0 || afterSpace && spaces&0x80 != 0 {
		return 0, false
	}
	upper := (x + (0x80-'A')*eachByte) &^ (x + (0x7F-'Z')*eachByte) & highBits
	return x | upper>>2, true
}
