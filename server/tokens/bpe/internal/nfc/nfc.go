// Package nfc brings texts into Unicode normalisation form C as PyPI's tokenizers does: with the data
// of Unicode 9.0, and without a limit on runs of marks.
package nfc

import (
	_ "embed" // the tables
	"encoding/binary"
	"slices"
	"sync"
	"unicode/utf8"
)

// tables say what is not as it is with most code points. Hangul syllables are computed.
type tables struct {
	classes    map[rune]uint8   // the combining classes that are not 0
	decomposed map[rune][2]rune // the second is 0 where there is only one
	composed   map[[2]rune]rune
	// stirs holds a bit for each code point that is not of class 0, or decomposes for good, or
	// composes with what is before it. A text without them is in form C.
	stirs [(utf8.MaxRune + 1) / 64]uint64
}

//go:embed nfc.bin
var packed []byte

// load reads the tables at their first use. What is in the file is said in .ci/tokens/tables.py.
var load = sync.OnceValue(func() *tables {
	t := &tables{classes: map[rune]uint8{}, decomposed: map[rune][2]rune{}, composed: map[[2]rune]rune{}}
	rest := packed
	next := func() rune {
		n, size := binary.Uvarint(rest)
		rest = rest[size:]
		return rune(n)
	}
	last := rune(0)
	for step := next(); step != 0; step = next() {
		last += step
		t.classes[last] = uint8(next())
		t.stir(last)
	}
	last = 0
	for step := next(); step != 0; step = next() {
		last += step
		first, second, composes := next(), next(), next()
		t.decomposed[last] = [2]rune{first, second}
		if composes == 0 {
			t.stir(last)
			continue
		}
		t.composed[[2]rune{first, second}] = last
		t.stir(second)
	}
	for r := rune(vowelBase); r < vowelBase+vowels; r++ {
		t.stir(r)
	}
	for r := rune(tailBase + 1); r < tailBase+tails; r++ {
		t.stir(r)
	}
	return t
})

func (t *tables) stir(r rune) { t.stirs[r/64] |= 1 << (r % 64) }

// Form brings texts into form C. It is safe for concurrent use.
type Form struct{ *tables }

// New returns the form.
func New() *Form { return &Form{load()} }

// Is reports whether the text is in form C already, or false if that takes a closer look.
func (f *Form) Is(text []byte) bool { return f.stirred(text, 0) == len(text) }

// stirred returns where the first code point at or after text[i] is that stirs, or the text's end.
func (f *Form) stirred(text []byte, i int) int {
	for i < len(text) {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if f.stirring(r) {
			return i
		}
		i += size
	}
	return i
}

func (f *Form) stirring(r rune) bool { return f.stirs[r/64]>>(r%64)&1 != 0 }

// Append appends the text in form C to dst.
func (f *Form) Append(dst, text []byte) []byte {
	for len(text) > 0 {
		at := f.stirred(text, 0)
		if at == len(text) {
			return append(dst, text...)
		}
		// What stirs does so with the code point before it at most, and up to one that does not stir.
		start, end := at, at
		if start > 0 {
			_, size := utf8.DecodeLastRune(text[:start])
			start -= size
		}
		for end < len(text) {
			r, size := utf8.DecodeRune(text[end:])
			if !f.stirring(r) {
				break
			}
			end += size
		}
		dst = append(dst, text[:start]...)
		dst = f.compose(dst, text[start:end])
		text = text[end:]
	}
	return dst
}

// char is a code point with its combining class.
type char struct {
	r     rune
	class uint8
}

// compose appends a stretch of text, decomposed, put in order and composed again.
func (f *Form) compose(dst, text []byte) []byte {
	chars := make([]char, 0, len(text))
	for _, r := range string(text) {
		chars = f.decompose(chars, r)
	}
	for i := 0; i < len(chars); i++ {
		if chars[i].class == 0 {
			continue
		}
		end := i + 1
		for end < len(chars) && chars[end].class != 0 {
			end++
		}
		slices.SortStableFunc(chars[i:end], func(a, b char) int { return int(a.class) - int(b.class) })
		i = end
	}
	starter, kept := -1, 0 // where the last code point of class 0 is, and how many are kept
	before := uint8(0)     // the class of the one kept last, if it is after the starter
	for _, c := range chars {
		if starter >= 0 && (starter == kept-1 || before < c.class && before != 0) {
			if r, ok := f.pair(chars[starter].r, c.r); ok {
				chars[starter].r = r
				continue
			}
		}
		if c.class == 0 {
			starter = kept
		}
		before = c.class
		chars[kept] = c
		kept++
	}
	for _, c := range chars[:kept] {
		dst = utf8.AppendRune(dst, c.r)
	}
	return dst
}

func (f *Form) decompose(chars []char, r rune) []char {
	if s := r - syllableBase; 0 <= s && s < syllables {
		chars = append(chars, char{r: leadBase + s/(vowels*tails)}, char{r: vowelBase + s/tails%vowels})
		if tail := s % tails; tail > 0 {
			chars = append(chars, char{r: tailBase + tail})
		}
		return chars
	}
	if d, ok := f.decomposed[r]; ok {
		chars = f.decompose(chars, d[0])
		if d[1] != 0 {
			chars = f.decompose(chars, d[1])
		}
		return chars
	}
	return append(chars, char{r, f.classes[r]})
}

func (f *Form) pair(a, b rune) (rune, bool) {
	lead, vowel := a-leadBase, b-vowelBase
	if 0 <= lead && lead < leads && 0 <= vowel && vowel < vowels {
		return syllableBase + (lead*vowels+vowel)*tails, true
	}
	syllable, tail := a-syllableBase, b-tailBase
	if 0 <= syllable && syllable < syllables && syllable%tails == 0 && 0 < tail && tail < tails {
		return a + tail, true
	}
	r, ok := f.composed[[2]rune{a, b}]
	return r, ok
}

// The Hangul syllables and the jamo that they are made of.
const (
	syllableBase = 0xAC00
	leadBase     = 0x1100
	vowelBase    = 0x1161
	tailBase     = 0x11A7 // that of no tail
	leads        = 19
	vowels       = 21
	tails        = 28
	syllables    = leads * vowels * tails
)
