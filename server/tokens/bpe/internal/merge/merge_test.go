package merge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive merges as the definition says: at the lowest pair, the leftmost of equal ones.
func naive(ids map[string]int, text string) []string {
	parts := strings.Split(text, "") // the tests' texts are ASCII
	for {
		at, lowest := -1, 0
		for i := range len(parts) - 1 {
			if id, ok := ids[parts[i]+parts[i+1]]; ok && (at < 0 || id < lowest) {
				at, lowest = i, id
			}
		}
		if at < 0 {
			return parts
		}
		parts = append(parts[:at], append([]string{parts[at] + parts[at+1]}, parts[at+2:]...)...)
	}
}

// drawVocabulary makes tokens of a few letters, each of two that exist already.
func drawVocabulary(t *rapid.T) (*Vocabulary, map[string]int) {
	texts := []string{"a", "b", "c", "d"}
	ids := map[string]int{}
	var tokens []Token
	id := func(text string) uint32 {
		if len(text) == 1 {
			return uint32(text[0])
		}
		return uint32(ids[text])
	}
	for range rapid.IntRange(0, 40).Draw(t, "tokens") {
		left, right := rapid.SampledFrom(texts).Draw(t, "left"), rapid.SampledFrom(texts).Draw(t, "right")
		text := left + right
		if _, ok := ids[text]; ok || len(text) > 40 {
			continue
		}
		// Merging the token's own bytes has to end with these two.
		if !slices.Equal(naive(ids, text), []string{left, right}) {
			continue
		}
		ids[text] = 256 + len(tokens)
		tokens = append(tokens, Token{id(left), id(right), []byte(text)})
		texts = append(texts, text)
	}
	return New(tokens, nil), ids
}

func TestCountMergesTheLowestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, ids := drawVocabulary(t)
		text := rapid.StringMatching(`[abcd]{1,200}`).Draw(t, "text")
		want := len(naive(ids, text))
		if got := v.Count([]byte(text)); got != want {
			t.Errorf("%q becomes %d tokens, want %d", text, got, want)
		}
		if got := new(scratch).count(v, []byte(text)); got != want {
			t.Errorf("%q becomes %d tokens by the heap, want %d", text, got, want)
		}
	})
}

func TestCount(t *testing.T) {
	// Tokens: 256 ab, 257 cd, 258 bc, 259 abcd.
	v := New([]Token{
		{'a', 'b', []byte("ab")},
		{'c', 'd', []byte("cd")},
		{'b', 'c', []byte("bc")},
		{256, 257, []byte("abcd")},
	}, []string{"bcbcb", "a text of more than fifteen bytes"})
	for _, tt := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"\xFF", 1},
		{"ab", 1},
		{"ba", 2},
		{"bc", 1},
		{"abc", 2},  // ab is lower than bc
		{"bcd", 2},  // cd is lower than bc
		{"abcd", 1}, // of ab and cd
		{"bcbc", 2},
		{"bcbcb", 1}, // whole, though no merge makes it
		{"bcbcba", 4},
		{"abcdabcdx", 3},
		{"a text of more than fifteen bytes", 1},
		{"a text of more than fifteen byteZ", 33},
		{strings.Repeat("abcd", 100), 100},
		{strings.Repeat("bc", 100), 100},
		{strings.Repeat("dcba", 100), 400},
	} {
		if got := v.Count([]byte(tt.text)); got != tt.want {
			t.Errorf("%.20q becomes %d tokens, want %d", tt.text, got, tt.want)
		}
	}
}

// Every token of each length is found, and none that is not there.
func TestCountOfWholePieces(t *testing.T) {
	var whole []string
	for n := 2; n <= 40; n++ {
		whole = append(whole, fmt.Sprintf("%0*d", n, n))
	}
	v := New(nil, whole)
	for _, text := range whole {
		if got := v.Count([]byte(text)); got != 1 {
			t.Errorf("%q becomes %d tokens, want 1", text, got)
		}
		for i := range text {
			other := []byte(text)
			other[i] ^= 0x40
			if got := v.Count(other); got != len(text) {
				t.Errorf("%q becomes %d tokens, want %d", other, got, len(text))
			}
		}
	}
}
