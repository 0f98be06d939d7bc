package memory

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// normalizer brings texts into the form in which they are compared: NFKC, then full case folding,
// then each run of White_Space to one space, then trimmed; once, not to a fixed point.
type normalizer struct {
	segments                 norm.Iter // kept, as norm.Form.AppendString allocates one a call
	folder                   transform.Transformer
	composed, folded, signed []byte
}

// append appends the normalised form of s to dst. The library does the work only where it must:
// most texts consist of code points that can be normalised one by one.
func (n *normalizer) append(dst []byte, s string) []byte {
	start := len(dst)
	dst, ok := appendPlain(dst, s)
	if ok {
		return dst
	}
	n.composed = n.composed[:0]
	for n.segments.InitString(norm.NFKC, s); !n.segments.Done(); {
		n.composed = append(n.composed, n.segments.Next()...)
	}
	n.folded = n.appendFolded(n.folded[:0], n.composed)
	return appendCollapsed(dst[:start], n.folded)
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
			page := foldPageOf(r)
			switch folded := page.folds[r%foldPageSize]; {
			case folded > 0:
				dst, afterSpace = appendFold(dst, folded, afterSpace)
			case folded < 0:
				for _, r := range page.expansions[-folded-1] {
					dst, afterSpace = appendFold(dst, r, afterSpace)
				}
			default:
				return dst, false
			}
		}
		s = s[end:]
	}
	if afterSpace && len(dst) > start {
		dst = dst[:len(dst)-1]
	}
	return dst, true
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

// appendFolded appends the full case folding of src: the rows C and F of CaseFolding.txt. The
// library turns the Cherokee capitals, which fold to themselves, into small letters
// (golang.org/issue/46101); they are kept from it.
func (n *normalizer) appendFolded(dst, src []byte) []byte {
	if n.folder == nil {
		n.folder = cases.Fold()
	}
	for len(src) > 0 {
		end := bytes.IndexFunc(src, isCherokeeCapital)
		if end == 0 {
			_, end = utf8.DecodeRune(src)
			dst, src = append(dst, src[:end]...), src[end:]
			continue
		}
		if end < 0 {
			end = len(src)
		}
		folded, _, err := transform.Append(n.folder, dst, src[:end])
		if err != nil {
			panic("memory: folding failed: " + err.Error()) // the library's fold has no errors
		}
		dst, src = folded, src[end:]
	}
	return dst
}

func isCherokeeCapital(r rune) bool { return 0x13A0 <= r && r <= 0x13F5 }

// appendCollapsed appends src with each run of White_Space as one space, and none at the ends.
func appendCollapsed(dst, src []byte) []byte {
	start := len(dst)
	for field := range bytes.FieldsSeq(src) { // its white space is unicode.IsSpace: the property
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = append(dst, field...)
	}
	return dst
}
