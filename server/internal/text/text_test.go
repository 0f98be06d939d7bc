package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/promptassembly/promptassembly/server/internal/text"
)

func TestChars(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"naïve", 5},
		{"e\u0301", 2},
		{"界", 1},
		{"𝒳", 1},
		{"👩‍👩‍👧‍👦", 7},
		{"a\r\nb\x00", 5},
		{"\uFFFD\uFFFE\uFFFF", 3},
	} {
		// Wherever it stands in a row of 32 bytes.
		for pad := range 65 {
			if got := text.Chars(strings.Repeat("x", pad) + tt.text); got != pad+tt.want {
				t.Errorf("%q after %d letters has %d chars, want %d", tt.text, pad, got, pad+tt.want)
			}
		}
	}
}

func FuzzChars(f *testing.F) {
	f.Add("ASCII only, and more than thirty-two bytes of it")
	f.Add("请用简体中文回答，并且写得足够长，让它超过三十二个字节")
	f.Add("mixed: naïve 界 𝒳 \U0010FFFF, thirty-two bytes and a few more of them")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\uFFFD")
		if got, want := text.Chars(s), utf8.RuneCountInString(s); got != want {
			t.Errorf("%q has %d chars, want %d", s, got, want)
		}
	})
}

// whiteSpace is the Unicode property, copied by hand.
const whiteSpace = "\t\n\v\f\r \u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A" +
	"\u2028\u2029\u202F\u205F\u3000"

func TestBlank(t *testing.T) {
	for r := range utf8.MaxRune + 1 {
		if got, want := text.Blank(string(r)), strings.ContainsRune(whiteSpace, r); utf8.ValidRune(r) && got != want {
			t.Errorf("%U is blank: %t, want %t", r, got, want)
		}
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"", true},
		{whiteSpace, true},
		{whiteSpace + "x", false},
		{"x" + whiteSpace, false},
		{" \u200B ", false},
		{" \u001C ", false},
		{" \x00 ", false},
	} {
		if got := text.Blank(tt.text); got != tt.want {
			t.Errorf("%q is blank: %t, want %t", tt.text, got, tt.want)
		}
	}
}

func TestAfterLineBreak(t *testing.T) {
	const breaks = "\n\r\v\f\u0085\u2028\u2029"
	for r := range utf8.MaxRune + 1 {
		s := "a" + string(r) + "-"
		if got, want := text.AfterLineBreak(s, len(s)-1), strings.ContainsRune(breaks, r); utf8.ValidRune(r) && got != want {
			t.Errorf("what follows %U follows a line break: %t, want %t", r, got, want)
		}
	}
	for _, tt := range []struct {
		text string
		at   int
		want bool
	}{
		{"-", 0, false},
		{"\n-", 0, false},
		{"\n-", 1, true},
		{"\r\n-", 2, true},
		{"\n -", 2, false},
		{"-\n", 0, false},
		{"\u2028-", len("\u2028"), true},
		{"\u2028", 1, false}, // in the middle of it
	} {
		if got := text.AfterLineBreak(tt.text, tt.at); got != tt.want {
			t.Errorf("byte %d of %q follows a line break: %t, want %t", tt.at, tt.text, got, tt.want)
		}
	}
}
