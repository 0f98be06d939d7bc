package tokens_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/tokens"
)

func estimate(s string) int { return tokens.Estimate{}.Count([]byte(s)) }

func TestEstimate(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"Use Go.", 3},
		{"snake_case_1 camelCase2", 2},
		{"kebab-case", 3},
		{"3.14", 3},
		{"...", 3},
		{"请用简体中文回答", 8},
		{"你好,world", 4},
		{"你好，world", 4},
		{"naïve", 3},
		{"nai\u0308ve", 3},
		{"日本のカナ", 5},
		{"ｶﾞ", 2},
		{"한국어", 3},
		{"\u1100\u1161", 2},
		{"👩‍👩‍👧‍👦", 7},
		{"\u001C", 1},
		{"a\u001Cb", 3},
		{"a\x00b", 3},
		{"a\u200Bb", 3},
		{"\u00AD\uFEFF\u2060\u180E", 4},
		{"a\u00A0b\u3000c", 3},
		{"\u3001\u2030\u1681\u0086\u00A1", 5}, // neighbours of white space
		{"１２", 2},                             // full-width digits are not ASCII
		{"<memory_hit n=\"1\">a</memory_hit>\n", 13},
		{"\n\n---\n\n", 3},
	} {
		if got := estimate(tt.text); got != tt.want {
			t.Errorf("%q has %d tokens, want %d", tt.text, got, tt.want)
		}
	}
}

// whiteSpace is the Unicode property, copied by hand.
const whiteSpace = "\t\n\v\f\r \u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A" +
	"\u2028\u2029\u202F\u205F\u3000"

func TestEstimateOfEachCodePoint(t *testing.T) {
	for r := range utf8.MaxRune + 1 {
		if !utf8.ValidRune(r) {
			continue
		}
		alone, between := 1, 3
		switch {
		case strings.ContainsRune(whiteSpace, r):
			alone, between = 0, 2
		case isWord(r):
			between = 1
		}
		if got := estimate(string(r)); got != alone {
			t.Errorf("%U has %d tokens, want %d", r, got, alone)
		}
		if got := estimate("a" + string(r) + "b"); got != between {
			t.Errorf("%U between letters: %d tokens, want %d", r, got, between)
		}
	}
}

func isWord(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}

// runeByRune is the estimate as the contract words it.
func runeByRune(s string) int {
	n, inWord := 0, false
	for _, r := range s {
		switch {
		case isWord(r):
			if !inWord {
				n++
			}
		case !strings.ContainsRune(whiteSpace, r):
			n++
		}
		inWord = isWord(r)
	}
	return n
}

func FuzzEstimate(f *testing.F) {
	for _, s := range []string{"Use Go.", "请用简体中文回答", "a\u00A0b\u3000c\u2028d", "naïve\x00\u001C", "a\u0085\u0086_9-Z", "\u1680\u1681"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\uFFFD")
		if got, want := estimate(s), runeByRune(s); got != want {
			t.Errorf("%q has %d tokens, want %d", s, got, want)
		}
	})
}

func TestEstimateIsAdditive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9_ <>"=\n\-]*`))
		if err := testcounter.CheckSeams(tokens.Estimate{}, text.Draw(t, "a"), text.Draw(t, "b")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEstimateKeepsAndChangesNothing(t *testing.T) {
	text := []byte("Use Go,\u00A0 naïve 界")
	sent := string(text)
	tokens.Estimate{}.Count(text)
	if string(text) != sent {
		t.Errorf("%q was changed into %q", sent, text)
	}
	if n := testing.AllocsPerRun(10, func() { tokens.Estimate{}.Count(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
