package bpe_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// additiveCounters returns counters of every kind of splitter; of the loaded ones, small vocabularies
// whose tokens span what a wrong splitter would leave together.
func additiveCounters(t testing.TB) []*bpe.Counter {
	counters := []*bpe.Counter{embedded(t, "cl100k_base"), embedded(t, "o200k_base")}
	for _, name := range []string{"gpt2", "llama3", "qwen", "qwen35", "gpt4o", "nemo", "deepseek", "deepseek2", "coder", "digits", "added"} {
		counters = append(counters, load(t, name))
	}
	for _, c := range counters {
		if !c.Additive() {
			t.Fatalf("%s is not additive", c.Name())
		}
	}
	return counters
}

// checkSeams checks what Additive promises of the texts a and b.
func checkSeams(t interface{ Errorf(string, ...any) }, c *bpe.Counter, a, b string) {
	count := func(s string) int { return c.Count([]byte(s)) }
	equal := func(seam string, whole, parts int) {
		if whole != parts {
			t.Errorf("%s, %s of %q and %q: %d tokens, %d in parts", c.Name(), seam, a, b, whole, parts)
		}
	}
	for _, start := range []string{"</", "<m", "<Z"} {
		equal("lines", count(a+">\n"+start+b), count(a+">\n")+count(start+b))
	}
	const separator, rest = "\n\n---\n\n", "---\n\n"
	equal("separator", count(a+separator+b), count(a+separator)-count(rest)+count(rest+b))
	equal("attribute", count(a+`"`+` name="`+b), count(a+`"`)+count(` name="`+b))
}

// pieces are what meets at the seams in adversarial texts.
var pieces = []string{
	" ", "  ", "\n", "\n\n", "\r", "\r\n", "\t", "\u0085", "\u00A0", "\u2028", "\u3000", "\u1680", "\u200B", "\x00",
	"/", "//", "-", "--", "---", ">", "<", "!", ".", "\"", "'", "'s", "'S", "'ſ", "=", "\" ", " \"",
	"a", "A", "é", "e\u0301", "\u0301", "\u0338", "\u0323", "ǅ", "ʰ", "中", "あ", "한", "\u1161", "\u11A8", "ß", "ſ",
	"1", "12", "123", "١", "²", "😀", "👍🏽", "\U0001F1E9", "\uFE0F",
	"name=\"", "memory_hit", "</memory_hit>\n", "\n\n---\n\n", "<think>", "</think>", "<tool_call>", "<mem>", "\n\n\n", "==",
}

func adversarial() *rapid.Generator[string] {
	of := rapid.OneOf(rapid.SampledFrom(pieces), rapid.SampledFrom(pieces), rapid.String())
	return rapid.Map(rapid.SliceOfN(of, 0, 12), func(parts []string) string { return strings.Join(parts, "") })
}

func TestSeams(t *testing.T) {
	counters := additiveCounters(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := adversarial().Draw(t, "a"), adversarial().Draw(t, "b")
		for _, c := range counters {
			checkSeams(t, c, a, b)
		}
	})
}

// Each two pieces on the left with each on the right.
func TestSeamsOfAllPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range additiveCounters(t) {
		for _, first := range pieces {
			for i, second := range pieces {
				checkSeams(t, c, first+second, pieces[(i*7)%len(pieces)])
				checkSeams(t, c, second, first+second)
			}
		}
	}
}

func FuzzSeams(f *testing.F) {
	for i, p := range pieces {
		f.Add(p+pieces[(i+13)%len(pieces)], p)
	}
	counters := additiveCounters(f)
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "\uFFFD"), strings.ToValidUTF8(b, "\uFFFD")
		for _, c := range counters {
			checkSeams(t, c, a, b)
		}
	})
}
