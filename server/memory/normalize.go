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
		folds, end := plainFolds(), len(s)
		for i, r := range s {
			if r < utf8.RuneSelf {
				end = i
				break
			}
			if r >= rune(len(folds)) || folds[r] == notPlain {
				return dst, false
			}
			dst, afterSpace = appendFold(dst, rune(folds[r]), afterSpace)
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

// notPlain is the fold of a code point that is not plain. A plain one is normalised by itself,
// whatever plain or ASCII code points stand around it, and becomes one code point: it neither
// combines with what is before it nor reorders.
const notPlain = 0

// plainFolds is the normalised form of each plain code point of the Basic Multilingual Plane beyond
// ASCII, ' ' for white space: the library's word, asked once.
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
		if end == 0 {
			_, end = utf8.DecodeRune(src)
			dst, src = append(dst, src[:end]...), src[end:]
			continue
		}
		if end < 0 {
			end = len(src)
		}
		folded, _, err := transform.Append(cases.Fold(), dst, src[:end])
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
