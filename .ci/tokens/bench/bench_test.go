// Package bench compares the speed of the embedded encodings with that of tiktoken-go/tokenizer. It
// is a module of its own, so that nothing else depends on that package.
package bench

import (
	"os"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

func BenchmarkCount(b *testing.B) {
	for _, kind := range []string{"hits", "chinese", "code", "english"} {
		text, err := os.ReadFile("../../../server/tokens/bpe/testdata/samples/" + kind + ".txt")
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range bpe.Embedded() {
			other, err := tokenizer.Get(tokenizer.Encoding(c.Name()))
			if err != nil {
				continue // the name of a model
			}
			b.Run(kind+"/"+c.Name()+"/bpe", func(b *testing.B) {
				measure(b, text, func() int { return c.Count(text) })
			})
			b.Run(kind+"/"+c.Name()+"/tiktoken-go", func(b *testing.B) {
				s := string(text)
				measure(b, text, func() int {
					n, err := other.Count(s)
					if err != nil {
						b.Fatal(err)
					}
					return n
				})
			})
		}
	}
}

func measure(b *testing.B, text []byte, count func() int) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	n := count()
	for b.Loop() {
		if count() != n {
			b.Fatal("counts differ")
		}
	}
	b.ReportMetric(float64(n), "tokens")
}
