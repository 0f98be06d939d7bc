package memory

import (
	"sync/atomic"
	"unicode"
	"unicode/utf8"

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

// A code point is plain if it is normalised by itself, whatever plain or ASCII code points stand
// around it: it neither combines with what is before it nor moves. The library says which are, and
// what they become; its word is kept, page by page, as asking takes many times as long.

// foldPage has the normalised forms of the code points of one page, ' ' for white space.
type foldPage struct {
	// folds holds a positive code point, or i where the form is the expansion at -i-1, or notPlain.
	folds [foldPageSize]rune
	// expansions are the forms of several code points.
	expansions []string
}

const (
	foldPageSize = 256
	notPlain     = 0
)

var foldPages [(unicode.MaxRune + 1) / foldPageSize]atomic.Pointer[foldPage]

// foldPageOf returns the page of a code point beyond ASCII.
func foldPageOf(r rune) *foldPage {
	page := &foldPages[r/foldPageSize]
	if known := page.Load(); known != nil {
		return known
	}
	asked := newFoldPage(r / foldPageSize * foldPageSize)
	page.Store(asked) // whoever else is asking hears the same
	return asked
}

func newFoldPage(first rune) *foldPage {
	page := new(foldPage)
	var n normalizer
	var composed, folded []byte
	for i := range page.folds {
		r := first + rune(i)
		if unicode.IsSpace(r) {
			page.folds[i] = ' '
			continue
		}
		composed = norm.NFKC.AppendString(composed[:0], string(r))
		if !norm.NFKC.PropertiesString(string(r)).BoundaryBefore() || !norm.NFKC.Properties(composed).BoundaryBefore() {
			continue
		}
		folded = n.appendFolded(folded[:0], composed)
		if form, size := utf8.DecodeRune(folded); size == len(folded) && !unicode.IsSpace(form) {
			page.folds[i] = form
			continue
		}
		page.expansions = append(page.expansions, string(folded))
		page.folds[i] = -rune(len(page.expansions))
	}
	return page
}
