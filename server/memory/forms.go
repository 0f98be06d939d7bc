package memory

import (
	"bytes"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

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

// formPage has the normalised forms of the code points of one page, each by itself. It is the
// library's word, kept, as asking takes many times as long.
type formPage struct {
	// forms holds a code point, ' ' for white space, or -i-1 where the form is expansions[i].
	forms      [formPageSize]rune
	expansions []expansion
	// plain code points are normalised by themselves, whatever plain or ASCII code points stand
	// around them: they neither combine with what is before them nor move.
	plain [formPageSize]bool
}

// expansion is a form of several code points.
type expansion struct {
	composed   string // NFKC alone
	normalized string // folded, too
}

const formPageSize = 256

var formPages [(unicode.MaxRune + 1) / formPageSize]atomic.Pointer[formPage]

// formPageOf returns the page of a code point beyond ASCII.
func formPageOf(r rune) *formPage {
	page := &formPages[r/formPageSize]
	if known := page.Load(); known != nil {
		return known
	}
	asked := newFormPage(r / formPageSize * formPageSize)
	page.Store(asked) // whoever else is asking hears the same
	return asked
}

func newFormPage(first rune) *formPage {
	page := new(formPage)
	for i := range page.forms {
		r := first + rune(i)
		composed := norm.NFKC.Bytes([]byte(string(r)))
		page.plain[i] = norm.NFKC.PropertiesString(string(r)).BoundaryBefore() && norm.NFKC.Properties(composed).BoundaryBefore()
		if unicode.IsSpace(r) {
			page.forms[i] = ' '
			continue
		}
		folded := foldCase(composed)
		if form, size := utf8.DecodeRune(folded); size == len(folded) {
			page.forms[i] = form
			continue
		}
		page.expansions = append(page.expansions, expansion{composed: string(composed), normalized: string(folded)})
		page.forms[i] = -rune(len(page.expansions))
	}
	return page
}

// append appends the form of r, a code point of the page, as appendFold does.
func (p *formPage) append(dst []byte, r rune, afterSpace bool) ([]byte, bool) {
	form := p.forms[r%formPageSize]
	if form >= 0 {
		return appendFold(dst, form, afterSpace)
	}
	for _, r := range p.expansions[-form-1].normalized {
		dst, afterSpace = appendFold(dst, r, afterSpace)
	}
	return dst, afterSpace
}

// composition returns the NFKC form of r, a code point of the page, if its normalised form is of
// several code points, else "".
func (p *formPage) composition(r rune) string {
	if form := p.forms[r%formPageSize]; form < 0 {
		return p.expansions[-form-1].composed
	}
	return ""
}

// foldCase returns the full case folding of src: the rows C and F of CaseFolding.txt. The library
// turns the Cherokee capitals, which fold to themselves, into small letters (golang.org/issue/46101);
// they are kept from it.
func foldCase(src []byte) []byte {
	var dst []byte
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
