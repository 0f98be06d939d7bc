package tokens_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// BenchmarkCache reports what it takes to find a count, and to look for it in vain and keep it. The
// counter takes no time.
func BenchmarkCache(b *testing.B) {
	set := tokens.NewSet(testcounter.Blocks{})
	for _, size := range []int{128, 500, 4000} {
		b.Run(fmt.Sprintf("found/%d", size), func(b *testing.B) {
			cached := tokens.NewCache(32<<20, set).For(set[0], "a")
			texts := make([][]byte, 1000)
			for i := range texts {
				texts[i] = fmt.Appendf(nil, "%0*d", size, i)
				cached.Count(texts[i])
			}
			b.ReportAllocs()
			b.SetBytes(int64(size))
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					cached.Count(texts[i%len(texts)])
				}
			})
		})
	}
	b.Run("kept/500", func(b *testing.B) {
		cached := tokens.NewCache(32<<20, set).For(set[0], "a")
		text := []byte(strings.Repeat("x", 500))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			copy(text, fmt.Sprint(i))
			cached.Count(text)
		}
	})
}
