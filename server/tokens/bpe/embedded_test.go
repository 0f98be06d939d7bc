package bpe_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

func TestEmbeddedDescribeThemselves(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range bpe.Embedded() {
		if seen[c.Name()] {
			t.Errorf("%s is there twice", c.Name())
		}
		seen[c.Name()] = true
		if !c.Exact() || !c.Additive() || c.Version() != "1 (Unicode 16.0)" {
			t.Errorf("%s: exact %t, additive %t, version %q", c.Name(), c.Exact(), c.Additive(), c.Version())
		}
	}
	for name, encoding := range map[string]string{
		"cl100k_base": "cl100k_base", "gpt-4": "cl100k_base", "gpt-3.5-turbo": "cl100k_base", "text-embedding-3-small": "cl100k_base",
		"o200k_base": "o200k_base", "gpt-4o": "o200k_base", "gpt-4o-mini": "o200k_base", "gpt-4.1": "o200k_base", "gpt-5": "o200k_base",
		"o1": "o200k_base", "o3": "o200k_base", "o4-mini": "o200k_base",
	} {
		if want := "tiktoken " + encoding + ", embedded"; !seen[name] || embedded(t, name).Source() != want {
			t.Errorf("%s is missing or its source is not %q", name, want)
		}
	}
}

func TestEmbeddedCounts(t *testing.T) {
	for _, tt := range []struct {
		text          string
		cl100k, o200k int // by the reference
	}{
		{"", 0, 0},
		{"Hello, world", 3, 3},
		{"a\n \nb", 3, 3},
		{"<|endoftext|>", 7, 7}, // special tokens are plain text
		{"请用简体中文回答", 9, 6},
	} {
		for name, want := range map[string]int{"cl100k_base": tt.cl100k, "gpt-4": tt.cl100k, "o200k_base": tt.o200k, "o3": tt.o200k} {
			if got := embedded(t, name).Count([]byte(tt.text)); got != want {
				t.Errorf("%s: %q has %d tokens, want %d", name, tt.text, got, want)
			}
		}
	}
}

// The merges give back the files of ranks that tiktoken's publisher hands out: these are their hashes,
// as PyPI's tiktoken expects them.
func TestEmbeddedRanksAreThePublishedOnes(t *testing.T) {
	for name, want := range map[string]string{
		"cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
		"o200k_base":  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
	} {
		var tokens [][]byte
		for seen := range 2 { // the bytes of Latin-1 that are seen come first
			for b := range 256 {
				if (b >= 0x21 && b <= 0x7E || b >= 0xA1 && b != 0xAD) == (seen == 0) {
					tokens = append(tokens, []byte{byte(b)})
				}
			}
		}
		tokens = append(tokens, bpe.Texts(t, name)...)
		hash := sha256.New()
		for rank, token := range tokens {
			fmt.Fprintf(hash, "%s %d\n", base64.StdEncoding.EncodeToString(token), rank)
		}
		if got := hex.EncodeToString(hash.Sum(nil)); got != want {
			t.Errorf("%s: the file of its ranks has the sha256 %s, want %s", name, got, want)
		}
	}
}

func TestCountKeepsAndChangesNothing(t *testing.T) {
	for _, c := range []*bpe.Counter{embedded(t, "o200k_base"), load(t, "added"), load(t, "deepseek"), load(t, "spaced")} {
		text := []byte("It's e\u0301 <think> 中文 \n " + strings.Repeat("ab", 500))
		sent := slices.Clone(text)
		c.Count(text)
		if !slices.Equal(text, sent) {
			t.Errorf("%s changed %q into %q", c.Name(), sent, text)
		}
	}
}

func TestCountByManyAtOnce(t *testing.T) {
	text := []byte("Hello, world e\u0301 <think>" + strings.Repeat("中文", 200) + strings.Repeat("=", 1000))
	for _, tt := range []struct{ fresh, other *bpe.Counter }{
		{bpe.Fresh("cl100k_base"), embedded(t, "cl100k_base")},
		{load(t, "added"), load(t, "added")},
	} {
		want := tt.other.Count(text)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					if got := tt.fresh.Count(text); got != want {
						t.Errorf("%s: %d tokens, want %d", tt.fresh.Name(), got, want)
					}
				}
			})
		}
		all.Wait()
	}
}

// What is no UTF-8 is outside of the promise, but must not break anything.
func FuzzCount(f *testing.F) {
	for _, p := range pieces {
		f.Add([]byte(p))
	}
	f.Add([]byte("\xE4\xB8"))
	f.Add([]byte("\xC5\xBF\xFF\xF0\x9F"))
	counters := []*bpe.Counter{embedded(f, "cl100k_base"), embedded(f, "o200k_base"), load(f, "added"), load(f, "deepseek"), load(f, "qwen35"), load(f, "spaced_pieces")}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, c := range counters {
			if n := c.Count(text); n < 0 || n > 8*len(text) {
				t.Errorf("%s: %q has %d tokens", c.Name(), text, n)
			}
		}
	})
}
