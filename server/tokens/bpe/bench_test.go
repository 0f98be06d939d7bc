package bpe_test

import (
	"os"
	"testing"
)

func BenchmarkCount(b *testing.B) {
	for _, kind := range []string{"hits", "chinese", "code", "english"} {
		text, err := os.ReadFile("testdata/samples/" + kind + ".txt")
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"cl100k_base", "o200k_base"} {
			c := embedded(b, name)
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				c.Count(text)
				for b.Loop() {
					c.Count(text)
				}
			})
		}
	}
}
