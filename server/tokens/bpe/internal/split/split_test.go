package split

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func known(t testing.TB, expression string) Splitter {
	s, ok := Known(expression)
	if !ok {
		t.Fatalf("%q is not known", expression)
	}
	return s
}

const (
	qwen     = anyCase + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + others
	qwen35   = anyCase + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` + spaces
	nemo     = upperFirst + `|` + upperOnly + `|\p{N}|` + othersPath
	deepseek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" +
		" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// Pieces by hand, from the expressions.
func TestNext(t *testing.T) {
	for _, tt := range []struct {
		name, expression string
		pieces           []string
	}{
		{"words", CL100K, []string{"It", "'s", " well", " known", "!!\n\n", "  ", " x"}},
		{"contractions in any case", CL100K, []string{"A", "'RE", "'lL", "'ſ", "e", "'t", "''", "rxe", "'x"}},
		{"numbers", CL100K, []string{"123", "456", "7", " ", "١٢", "a", "½²①", "Ⅷ"}},
		{"white space", CL100K, []string{"a", " \n \r\n", "\t", "\tb", "\u3000c", "\n\u2028\n", "\u0085", "\u2028", "-", "\u00A0"}},
		{"line breaks after signs", CL100K, []string{" ./\r\n\r", "/\n", " -", " \n", "-"}},
		{"marks are signs", CL100K, []string{"e", "\u0301", " e", "\u0301x", "\u0301\u0301\n"}},
		{"what looks like nothing", CL100K, []string{"\x00\u200B\uFFFE", "a", "\u200Ba", "5", "\u0378"}},
		{"cases", O200K, []string{"HTMLElement", "Id", " foo", "Bar's", "ABC'VE", " ǅaʰ", "B", "!Ab"}},
		{"letters without case end words", O200K, []string{"Aあ", "BC", " BあCあ", "DE", " AあBc\u0301", "A\u0301", "ABC", "\n", "\u0301A\u0301", "B"}},
		{"paths", O200K, []string{"!\n/\n", "a", "./", "b", "/c", " //\r\n//"}},
		{"one number", qwen, []string{"1", "2", "x", " ", "3"}},
		{"marks are letters", qwen35, []string{"e\u0301", " \u0301", "!\u0301\u0301", "1", "\u0301"}},
		{"no contractions", nemo, []string{"It", "'s", "'", "1", "2"}},
		{"GPT-2", GPT2, []string{"It", "'s", " 12345", "'", "S", " !!", "\n", "\n", "a", "  ", " b", "\t", "\t", "c"}},
		{"GPT-2, white space at the end", GPT2, []string{"a", " \n "}},
		{"signs and Latin letters", deepseek, []string{".foo", "_bar", "..", "baz", " é", "-", "é", " .-", "x", "!!\n"}},
		{"neither", deepseek, []string{"12\x00", " ", "5", "\x00a", "\u200B1", "\n", "1"}},
		{"numbers alone", `\p{N}{1,3}`, []string{"123", "4", "abc ", "٣", "x"}},
		{"runs of numbers", `\p{N}+`, []string{"12345", "abc ", "٣", "x"}},
		{"line breaks by themselves", `[\r\n]`, []string{"a", "\r", "\n", "\n", "b "}},
		{"white space belongs to the run after it", `\s?[!-/:-~　-。]+`, []string{"1 ", " !!", "2", "\n-", "\t", "\t\u3000\u3000。", "3", "。\u3000", " 4"}},
		{"a few at most", `[ab]{1,3}`, []string{"aba", "b", "ccc", "a"}},
		{"white space at the ends of lines", `\s+$`, []string{"a", " ", "\nb", " \n\t", "\n c", "\t "}},
		{"scripts", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", []string{"ab", "中文かな", "、", "ー", "한"}},
	} {
		s := known(t, tt.expression)
		var got []string
		for text := []byte(strings.Join(tt.pieces, "")); len(text) > 0; {
			end := s.Next(text)
			got = append(got, string(text[:end]))
			text = text[end:]
		}
		if !slices.Equal(got, tt.pieces) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.pieces)
		}
	}
}

// The effects of what is no expression of words, by hand.
func TestSeam(t *testing.T) {
	for _, tt := range []struct {
		expression string
		want       [3]Effect
	}{
		{CL100K, [3]Effect{Cuts, Cuts, Cuts}},
		{`\p{N}{1,3}`, [3]Effect{Passes, Passes, Passes}},
		{`[一-龥]+`, [3]Effect{Passes, Passes, Passes}},
		{`[\r\n]`, [3]Effect{Cuts, Cuts, Passes}},
		{`\s?[A-Za-zé]+`, [3]Effect{Passes, Passes, Cuts}},
		{`\s?[A-Zé]+`, [3]Effect{Passes, Passes, Spoils}},
		{`\s?\p{L}+`, [3]Effect{Passes, Passes, Cuts}},
		{`\s?\p{P}+`, [3]Effect{Passes, Spoils, Cuts}}, // '<' is a symbol
		{`\s?[!-/:-~]+`, [3]Effect{Spoils, Spoils, Cuts}},
		{`[!-/:-~]+`, [3]Effect{Cuts, Cuts, Cuts}},
		{"[\n<]+", [3]Effect{Spoils, Cuts, Passes}},
		{`[" ]`, [3]Effect{Passes, Passes, Spoils}},
		{`\s+$`, [3]Effect{Spoils, Spoils, Spoils}},
	} {
		s := known(t, tt.expression)
		if got := [3]Effect{s.Seam(Lines), s.Seam(Separator), s.Seam(Attribute)}; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.expression, got, tt.want)
		}
	}
}

func TestDigits(t *testing.T) {
	text := []byte("12a\U00011DE0\U00016FF4")
	if n := Digits(true).Next(text); n != 1 {
		t.Errorf("a digit by itself has %d bytes", n)
	}
	if n := Digits(false).Next(text); n != 2 {
		t.Errorf("a run of digits has %d bytes", n)
	}
	if n := Digits(false).Next(text[3:]); n != 8 {
		t.Errorf("a run of numbers that Unicode 17.0 brought has %d bytes", n)
	}
}

func TestUnknown(t *testing.T) {
	for _, expression := range []string{
		"", CL100K + "|x", " " + GPT2, `\p{N}*`, `\p{Lu}`, `\s?`, `\s`, "a", "[]", "[]a]", "[^a]", "[a", "[z-a]", "[a-]", `[\d]`, `[a&&b]`, "[[a]]", "[a]+?", "[a]{2}",
	} {
		if _, ok := Known(expression); ok {
			t.Errorf("%q is known", expression)
		}
	}
}

// Spot checks of the embedded table, with letters that Unicode 16.0 brought and 17.0 will.
func TestClasses(t *testing.T) {
	table := classes()
	for r, want := range map[rune]class{
		'A': upper, 'ǅ': upper, 'a': lower, 'ß': lower, 'ʰ': plain, 'ª': plain, '中': plain, '\u0301': mark, '\u0903': mark, '\u20DD': mark,
		'1': number, '²': number, 'Ⅷ': number, '〇': number, ' ': space, '\u0085': space, '\u1680': space, '\u2028': space,
		'\u200B': 0, '\u180E': 0, '\x1C': 0, '\x00': 0, '\u00AD': 0, '\uE000': 0, '\u0378': 0, unicode.MaxRune: 0,
		'!': punct, '_': punct, '—': punct, '$': symbol, '😀': symbol, '`': symbol,
		0xA7DA: upper, 0xA7DB: lower, 0x10D4A: plain, 0xA7CE: 0, 0x11DE0: 0,
	} {
		if got := table.of(r); got != want {
			t.Errorf("%U is of the class %b, want %b", r, got, want)
		}
	}
	for r := range unicode.MaxRune + 1 {
		if c := table.of(r); unicode.IsSpace(r) != (c&space != 0) || unicode.IsLetter(r) && c&letter == 0 {
			t.Errorf("%U is of the class %b", r, c)
		}
	}
}
