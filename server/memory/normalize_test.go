package memory_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/memory"
)

func TestNormalize(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"nothing to do", "use go 1.26, not c.", "use go 1.26, not c."},
		{"capitals", "ABCXYZ@[`{ ÀÉ ЖЯ ԱՖ", "abcxyz@[`{ àé жя աֆ"},
		{"full-width", "Ｕｓｅ　Ｇｏ：１", "use go:1"},
		{"sharp s", "Straße", "strasse"},
		{"capital sharp s", "STRAẞE", "strasse"},
		{"double s", "STRASSE", "strasse"},
		{"final sigma", "ΟΔΟΣ οδος", "οδοσ οδοσ"},
		{"dotted capital i", "İ", "i\u0307"},
		{"dotless i", "Iı", "iı"},
		{"n after an apostrophe", "ŉ", "\u02BCn"},
		{"long s", "ſ", "s"},
		{"kelvin, ångström, ohm", "\u212A\u212B\u2126", "kåω"},
		{"ligatures", "ﬁ ﬄ ﬓ", "fi ffl մն"},
		{"a fraction", "½", "1\u20442"},
		{"a superscript", "10²", "102"},
		{"a square unit", "㎏", "kg"},
		{"roman numerals", "Ⅷ ⅷ", "viii viii"},
		{"mathematical letters", "𝐀𝒳", "ax"},
		{"letters beyond the BMP", "\U00010400", "\U00010428"},
		{"a phrase in one code point", "ﷺ", "صلى الله عليه وسلم"},
		{"iota subscript", "ᾼᾳ", "αιαι"},
		{"what folds is not composed again", "\u1FD3\u0390", "ι\u0308\u0301ι\u0308\u0301"},
		{"once, not to a fixed point", "ß\u0307", "ss\u0307"},
		{"the same, sent as letters", "ss\u0307", "s\u1E61"},
		{"composition", "CAFE\u0301", "caf\u00E9"},
		{"marks in the other order", "q\u0307\u0323", "q\u0323\u0307"},
		{"marks in canonical order", "Q\u0323\u0307", "q\u0323\u0307"},
		{"composition around a mark", "e\u0323\u0301", "\u1EB9\u0301"},
		{"a mark at the start", "\u0301a", "\u0301a"},
		{"a joiner keeps marks apart", "e\u034F\u0301", "e\u034F\u0301"},
		{"excluded from composition", "\u0958", "\u0915\u093C"},
		{"Hangul jamo", "\u1100\u1161\u11A8", "각"},
		{"a Hangul syllable and a jamo", "가\u11A8", "각"},
		{"Hangul compatibility jamo", "ㄱㅏㄳ", "갃"},
		{"Hangul half-width jamo", "ﾡￂ", "가"},
		{"half-width katakana with dakuten", "ｶﾞﾊﾟ", "ガパ"},
		{"katakana with a combining dakuten", "カ\u3099", "ガ"},
		{"a spacing dakuten", "カ゛", "カ \u3099"},
		{"a spacing dakuten at the start", "゛", "\u3099"},
		{"compatibility ideographs", "豈\U0002F800", "豈丽"},
		{"white space", " a\t\n\v\f\r b\u0085c\u00A0d\u1680e\u2000\u200Af\u2028g\u2029h\u202Fi\u205Fj\u3000", "a b c d e f g h i j"},
		{"only white space", " \u3000\u00A0\t", ""},
		{"no white space", "\u001Ca\u001Db\u001Ec\u001F", "\u001Ca\u001Db\u001Ec\u001F"},
		{"no white space, either", "\u200Ba\u180Eb\uFEFFc\u2060", "\u200Ba\u180Eb\uFEFFc\u2060"},
		{"invisible characters are content", "a\u00ADb\u200Cc\u200Dd\uFE0F", "a\u00ADb\u200Cc\u200Dd\uFE0F"},
		{"punctuation is content", "Use Go.!?", "use go.!?"},
		{"a NUL", "a\x00B", "a\x00b"},
	} {
		// Wherever it stands in a row of eight bytes.
		for pad := range 9 {
			before := strings.Repeat("x", pad) + " "
			want := strings.TrimSpace(before + tt.want)
			if pad == 0 {
				want = tt.want
			}
			var n memory.Normalizer
			if got := n.Normalize(before + tt.text); got != want {
				t.Errorf("%s: %q becomes %q, want %q", tt.name, before+tt.text, got, want)
			}
		}
	}
}

func TestEachCherokeeSmallLetterIsItsCapital(t *testing.T) {
	var n memory.Normalizer
	check := func(capital, small rune) {
		for _, r := range []rune{capital, small} {
			if got := n.Normalize(string(r)); got != string(capital) {
				t.Errorf("%U becomes %+q, want %U", r, got, capital)
			}
			if got, want := n.Normalize("E\u0301"+string(r)+"X"), "é"+string(capital)+"x"; got != want {
				t.Errorf("%U among others becomes %+q, want %+q", r, got, want)
			}
		}
	}
	for i := range rune(0x50) {
		check(0x13A0+i, 0xAB70+i)
	}
	for i := range rune(6) {
		check(0x13F0+i, 0x13F8+i)
	}
}

// whiteSpace is the Unicode property, copied by hand.
const whiteSpace = "\t\n\v\f\r \u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A" +
	"\u2028\u2029\u202F\u205F\u3000"

// normalized is the library's normalised form, step by step. A Cherokee capital folds to itself.
func normalized(s string) string {
	var folded strings.Builder
	for _, r := range norm.NFKC.String(s) {
		switch {
		case r < utf8.RuneSelf:
			folded.WriteString(strings.ToLower(string(r)))
		case 0x13A0 <= r && r <= 0x13F5:
			folded.WriteRune(r)
		default:
			folded.WriteString(cases.Fold().String(string(r)))
		}
	}
	return strings.Join(strings.FieldsFunc(folded.String(), func(r rune) bool { return strings.ContainsRune(whiteSpace, r) }), " ")
}

// checkNormalized holds the two things that dedupe rests on: the normalised form is that of the
// library, and all texts of one normalised form have one signature.
func checkNormalized(t rapid.TB, n *memory.Normalizer, s string) {
	want := normalized(s)
	if got := n.Normalize(s); got != want {
		t.Fatalf("%+q becomes %+q, want %+q", s, got, want)
	}
	if got := n.Sign(s); got != memory.SignNormalized(want) {
		t.Fatalf("%+q has the signature %+q, its normalised form %+q", s, got, memory.SignNormalized(want))
	}
}

func TestNormalizeEveryCodePoint(t *testing.T) {
	var n memory.Normalizer
	for r := range utf8.MaxRune + 1 {
		if utf8.ValidRune(r) {
			checkNormalized(t, &n, string(r))
		}
	}
	for r := range rune(0x30000) {
		if utf8.ValidRune(r) {
			checkNormalized(t, &n, "가"+string(r)+"é") // among what needs no library
			checkNormalized(t, &n, "e"+string(r)+"\u3099")
		}
	}
}

func TestNormalizeWhereASignatureEnds(t *testing.T) {
	var n memory.Normalizer
	for _, filler := range []string{"e", "é", "カ", "가", " "} {
		for _, fragment := range fragments {
			for before := range 20 {
				text := strings.Repeat(filler, before) + fragment
				checkNormalized(t, &n, text)
				checkNormalized(t, &n, text+"and more")
				checkNormalized(t, &n, "and more "+fragment+strings.Repeat(filler, before))
			}
		}
	}
}

func TestNormalizeHostileTexts(t *testing.T) {
	var n memory.Normalizer
	rapid.Check(t, func(t *rapid.T) { checkNormalized(t, &n, hostileText.Draw(t, "text")) })
}

func FuzzNormalize(f *testing.F) {
	for _, fragment := range fragments {
		f.Add(fragment)
		f.Add("Use Go " + fragment + " or Use C")
		f.Add(fragment + "sixteen bytes are signed, spaces aside" + fragment)
	}
	var n memory.Normalizer
	f.Fuzz(func(t *testing.T, s string) { checkNormalized(t, &n, strings.ToValidUTF8(s, "\uFFFD")) })
}
