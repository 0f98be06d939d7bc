package memory

import (
	"bytes"
	"encoding/binary"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"github.com/promptassembly/promptassembly/server/internal/text"
)

// normalizer brings texts into the form in which they are compared: NFKC, then full case folding,
// then each run of White_Space to one space, then trimmed; once, not to a fixed point.
type normalizer struct {
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
	n.composed = norm.NFKC.AppendString(n.composed[:0], s)
	n.folded = appendFolded(n.folded[:0], n.composed)
	return appendCollapsed(dst[:start], n.folded)
}

// signatureEnds is how many bytes of each end of a text its signature holds.
const signatureEnds = 16

// appendSignature appends bytes that are the same for all texts of one normalised form, and differ
// for most others: the first and the last of that form that are no spaces. They are found without
// normalising an ASCII text.
func (n *normalizer) appendSignature(dst []byte, s string) []byte {
	if text.Chars(s) != len(s) {
		n.signed = n.append(n.signed[:0], s)
		return appendEnds(dst, n.signed)
	}
	return appendEnds(dst, []byte(s))
}

// appendEnds appends the folded bytes of both ends of s.
func appendEnds(dst, s []byte) []byte {
	start := len(dst)
	for i := 0; i < len(s) && len(dst) < start+signatureEnds; i++ {
		if c := asciiFolds[s[i]]; c != ' ' {
			dst = append(dst, c)
		}
	}
	start = len(dst)
	for i := len(s) - 1; i >= 0 && len(dst) < start+signatureEnds; i-- {
		if c := asciiFolds[s[i]]; c != ' ' {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendPlain appends the normalised form of s if all its code points are plain, and reports
// whether they are; if not, what it appended is of no use.
func appendPlain(dst []byte, s string) ([]byte, bool) {
	start := len(dst)
	afterSpace := true // a space here would be a leading one, or the second of a run
	for i := 0; i < len(s); {
		if len(s)-i >= 8 {
			if word, ok := foldWord(binary.LittleEndian.Uint64([]byte(s[i:i+8])), afterSpace); ok {
				dst = binary.LittleEndian.AppendUint64(dst, word)
				afterSpace = dst[len(dst)-1] == ' '
				i += 8
				continue
			}
		}
		folded, size := rune(asciiFolds[s[i]]), 1
		if s[i] >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if folded = plainFold(r); folded == notPlain {
				return dst, false
			}
		}
		i += size
		if folded != ' ' {
			dst = utf8.AppendRune(dst, folded)
			afterSpace = false
		} else if !afterSpace {
			dst = append(dst, ' ')
			afterSpace = true
		}
	}
	if afterSpace && len(dst) > start {
		dst = dst[:len(dst)-1]
	}
	return dst, true
}

// foldWord folds eight bytes at once. It reports false where they are not all ASCII, hold a control
// character, or a space that follows another.
func foldWord(x uint64, afterSpace bool) (uint64, bool) {
	const (
		each = 0x0101010101010101
		high = 0x80 * each
	)
	if x&high != 0 || (x+(0x80-' ')*each)&high != high {
		return 0, false
	}
	spaces := ^(x ^ ' '*each + 0x7F*each) & high
	if spaces&(spaces<<8) != 0 || afterSpace && spaces&0x80 != 0 {
		return 0, false
	}
	upper := (x + (0x80-'A')*each) &^ (x + (0x7F-'Z')*each) & high
	return x | upper>>2, true
}

// asciiFolds is the case folding of each ASCII byte, and ' ' for white space; other bytes are 0.
var asciiFolds = func() (folds [256]byte) {
	for r := range rune(utf8.RuneSelf) {
		folds[r] = byte(unicode.ToLower(r))
		if unicode.IsSpace(r) {
			folds[r] = ' '
		}
	}
	return folds
}()

// A code point is plain if it is normalised by itself, whatever plain or ASCII code points stand
// around it, and becomes one code point: it neither combines with what is before it nor reorders.
const notPlain = rune(0)

// plainFold returns the normalised form of a code point beyond ASCII, ' ' for white space, and
// notPlain if it is not plain.
func plainFold(r rune) rune {
	if r > 0xFFFF {
		return notPlain
	}
	return rune(plainFolds()[r])
}

// plainFolds is the library's word on each code point of the Basic Multilingual Plane, asked once.
var plainFolds = sync.OnceValue(func() *[0x10000]uint16 {
	var folds [0x10000]uint16
	var n normalizer
	var buf []byte
	for r := rune(utf8.RuneSelf); r <= 0xFFFF; r++ {
		s := string(r)
		if unicode.IsSpace(r) {
			folds[r] = ' '
			continue
		}
		if !norm.NFKC.PropertiesString(s).BoundaryBefore() {
			continue
		}
		n.composed = norm.NFKC.AppendString(n.composed[:0], s)
		buf = appendFolded(buf[:0], n.composed)
		folded, size := utf8.DecodeRune(buf)
		if size != len(buf) || folded > 0xFFFF || unicode.IsSpace(folded) || !norm.NFKC.Properties(n.composed).BoundaryBefore() {
			continue
		}
		folds[r] = uint16(folded)
	}
	return &folds
})

// appendFolded appends the full case folding of src: the rows C and F of CaseFolding.txt. The
// library turns the Cherokee capitals, which fold to themselves, into small letters
// (golang.org/issue/46101); they are kept from it.
func appendFolded(dst, src []byte) []byte {
	for len(src) > 0 {
		end := bytes.IndexFunc(src, isCherokeeCapital)
		switch {
		case end == 0:
			_, end = utf8.DecodeRune(src)
			dst = append(dst, src[:end]...)
		default:
			if end < 0 {
				end = len(src)
			}
			folded, _, err := transform.Append(cases.Fold(), dst, src[:end])
			if err != nil {
				panic("memory: folding failed: " + err.Error()) // the library's fold has no errors
			}
			dst = folded
		}
		src = src[end:]
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
