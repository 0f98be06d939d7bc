package bpe_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/promptassembly/promptassembly/server/tokens/bpe"
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

// The first Count of each encoding, and the memory that is kept for it.
func BenchmarkFirstCount(b *testing.B) {
	for _, name := range []string{"cl100k_base", "o200k_base"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			kept := 0.0
			for b.Loop() {
				before := heap()
				c := bpe.Fresh(name)
				c.Count([]byte("Hello"))
				b.StopTimer()
				kept = heap() - before
				runtime.KeepAlive(c)
				b.StartTimer()
			}
			b.ReportMetric(kept/(1<<20), "MiB-kept")
		})
	}
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
