//go:build !race

package bpe_test

import (
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// The race detector makes sync.Pool forget what it holds.

func TestCountAllocatesNothing(t *testing.T) {
	for _, c := range []*bpe.Counter{embedded(t, "cl100k_base"), embedded(t, "o200k_base"), load(t, "deepseek"), load(t, "qwen")} {
		text := []byte("It's \"well\" known, 中文 1234.\n " + strings.Repeat("remembered", 50))
		c.Count(text)
		if n := testing.AllocsPerRun(100, func() { c.Count(text) }); n >= 1 {
			t.Errorf("%s: %v allocations", c.Name(), n)
		}
	}
}
