//go:build !race

package bpe_test

// The race detector makes this take minutes, and finds nothing in it.

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// longTexts returns texts of that many bytes, each made of a few units in any order.
func longTexts(size int) map[string][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	texts := map[string][]byte{}
	for name, units := range map[string][]string{
		"Chinese":          strings.Split("中国人民的一是在不了有和人这大为上个", ""),
		"one character":    {"中"},
		"one letter":       {"a"},
		"upper case":       {"A"},
		"letters":          strings.Split("etaoinshrdlu", ""),
		"two letters":      {"a", "b"},
		"cases":            {"a", "B", "あ"},
		"spaces":           {" "},
		"emoji":            {"😀"},
		"many emoji":       {"😀", "👍🏽", "❤️", "🇩🇪"},
		"digits":           {"7"},
		"newlines":         {"\n"},
		"line breaks":      {"\r\n", "\n", " \n"},
		"newline, spaces":  {"\n", "   "},
		"signs":            {"="},
		"many signs":       {"=", "-", "/", ".", "!"},
		"marks":            {"\u0301", "\u0323"},
		"letters and mark": {"e\u0301", "e"},
		"controls":         {"\x00"},
		"numbers, controls": {
			"1", "\x00",
		},
		"quotes":       {"'", "'s"},
		"tags":         {"<"},
		"almost added": {"<tool_cal", "<thin", "  "},
		"Hangul":       {"\u1100", "\u1161", "\u11A8"},
	} {
		text := make([]byte, 0, size+16)
		for len(text) < size {
			text = append(text, units[random.IntN(len(units))]...)
		}
		texts[name] = text
	}
	return texts
}

// A text of 256 KiB takes about eight times as long as one of 32 KiB, or some more as it leaves the
// caches behind, whatever is in it:
// a rule that looked at all pairs would take 64 times as long.
func TestLongTextsTakeLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	counters := []*bpe.Counter{embedded(t, "cl100k_base"), embedded(t, "o200k_base")}
	for _, name := range []string{"added", "deepseek", "runs"} {
		counters = append(counters, load(t, name))
	}
	short, long := longTexts(32<<10), longTexts(256<<10)
	for _, c := range counters {
		for name := range short {
			var quick, slow time.Duration
			for range 5 { // the machine may have been busy
				quick, slow = fastest(c, short[name]), fastest(c, long[name])
				if slow < 32*quick+20*time.Millisecond {
					break
				}
			}
			if slow >= 32*quick+20*time.Millisecond {
				t.Errorf("%s, %s: 32 KiB take %v, 256 KiB %v", c.Name(), name, quick, slow)
			}
		}
	}
}

func fastest(c *bpe.Counter, text []byte) time.Duration {
	least := time.Hour
	for range 2 {
		start := time.Now()
		c.Count(text)
		least = min(least, time.Since(start))
	}
	return least
}

func BenchmarkLong(b *testing.B) {
	for name, text := range longTexts(256 << 10) {
		for _, encoding := range []string{"cl100k_base", "o200k_base"} {
			c := embedded(b, encoding)
			b.Run(strings.ReplaceAll(name, " ", "_")+"/"+encoding, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					c.Count(text)
				}
			})
		}
	}
}
