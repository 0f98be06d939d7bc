package tokens_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// asked is a counter that says how often it was asked.
type asked struct {
	testcounter.Blocks
	name  string
	times atomic.Int64
}

func (c *asked) Name() string { return c.name }

func (c *asked) Count(text []byte) int {
	c.times.Add(1)
	return c.Blocks.Count(text)
}

var long = strings.Repeat("a text that is long enough to be remembered; ", 3)

func TestCacheRemembers(t *testing.T) {
	one, other := &asked{name: "one"}, &asked{name: "other"}
	cache := tokens.NewCache(1<<20, tokens.NewSet(one, other, tokens.Estimate{}))
	mei := cache.For(one, "harness", "user:mei")
	want := one.Blocks.Count([]byte(long))
	for i := range 3 {
		if got := mei.Count([]byte(long)); got != want {
			t.Fatalf("time %d: %d tokens, want %d", i, got, want)
		}
	}
	if got := one.times.Load(); got != 1 {
		t.Errorf("counted %d times, want once", got)
	}
	cache.For(one, "harness", "user:mei").Count([]byte(long)) // as the next call
	if got := one.times.Load(); got != 1 {
		t.Error("the next call counts anew")
	}
	if got, want := cache.Use("one"), (tokens.Use{Hits: 3, Misses: 1}); got != want {
		t.Errorf("use %+v, want %+v", got, want)
	}

	for i, foreign := range []tokens.Counter{
		cache.For(one, "harness", "user:bob"),
		cache.For(one, "worker", "user:mei"),
		cache.For(one, "harness"),
		cache.For(one, "harnessuser:mei"),
		cache.For(one, "harnes", "suser:mei"),
		cache.For(one, "", "harness", "user:mei"),
	} {
		if foreign.Count([]byte(long)); one.times.Load() != int64(i)+2 {
			t.Errorf("tenant %d finds what another had counted", i)
		}
	}
	if cache.For(other, "harness", "user:mei").Count([]byte(long)); other.times.Load() != 1 {
		t.Error("a counter finds what another had counted")
	}
	one.times.Store(0)
	for range 3 {
		mei.Count([]byte("short"))
	}
	if got := one.times.Load(); got != 3 {
		t.Errorf("a short text was counted %d times, want 3", got)
	}
}

func TestCacheShowsNothing(t *testing.T) {
	set := tokens.NewSet(testcounter.Pieces{})
	cache := tokens.NewCache(20<<10, set) // the least there can be
	rapid.Check(t, func(t *rapid.T) {
		counter := cache.For(set[0], rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"))
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c\n ]{100,150}`)).Draw(t, "text")
		if got, want := counter.Count([]byte(text)), set[0].Count([]byte(text)); got != want {
			t.Fatalf("%q has %d tokens, want %d", text, got, want)
		}
	})
	counter := cache.For(set[0], "a")
	if counter.Name() != "test" || counter.Version() != "1" || counter.Source() != "a test" || counter.Exact() || !counter.Additive() {
		t.Errorf("it describes itself as %s %s %s", counter.Name(), counter.Version(), counter.Source())
	}
}

// Whatever is counted, the cache takes no more than it may, and what is in use stays.
func TestCacheIsBounded(t *testing.T) {
	counter := &asked{name: "one"}
	const bytes = 1 << 20
	cache := tokens.NewCache(bytes, tokens.NewSet(counter))
	if got := cache.Bytes(); got != 0 {
		t.Errorf("%d bytes before the first count", got)
	}
	used := cache.For(counter, "a")
	for i := range 100_000 {
		cache.For(counter, "b").Count(fmt.Appendf(nil, "%s %d", long, i))
		if i%1000 == 0 {
			used.Count([]byte(long))
		}
	}
	if got := counter.times.Load(); got != 100_001 {
		t.Errorf("%d texts were counted, want all of one tenant and the other's once", got)
	}
	if got := cache.Bytes(); got > bytes || got < bytes/2 {
		t.Errorf("%d bytes, want at most %d", got, bytes)
	}
	before := counter.times.Load()
	for i := 99_000; i < 100_000; i++ {
		cache.For(counter, "b").Count(fmt.Appendf(nil, "%s %d", long, i))
	}
	if again := counter.times.Load() - before; again > 10 {
		t.Errorf("%d of the last 1,000 texts are forgotten", again)
	}
	before = counter.times.Load()
	for i := range 1000 {
		cache.For(counter, "b").Count(fmt.Appendf(nil, "%s %d", long, i))
	}
	if again := counter.times.Load() - before; again != 1000 {
		t.Errorf("%d of the first 1,000 texts are forgotten, want all", again)
	}
}

func TestCacheAtTheSameTime(t *testing.T) {
	counter := &asked{name: "one"}
	cache := tokens.NewCache(1<<20, tokens.NewSet(counter))
	shared := cache.For(counter, "a")
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for i := range 2000 {
				text := fmt.Appendf(nil, "%s%s", long, strings.Repeat("x", i%100))
				if got, want := shared.Count(text), counter.Blocks.Count(text); got != want {
					t.Errorf("%q has %d tokens, want %d", text, got, want)
				}
			}
		})
	}
	calls.Wait()
	if use := cache.Use("one"); use.Hits+use.Misses != 16_000 || use.Misses < 100 || use.Misses > 800 {
		t.Errorf("use %+v of 16,000 texts, 100 of them different", use)
	}
}

func TestNoCache(t *testing.T) {
	counter := &asked{name: "one"}
	set := tokens.NewSet(counter, tokens.Estimate{})
	none := tokens.NewCache(1<<10, set)
	if got := none.For(counter, "a"); got != tokens.Counter(counter) {
		t.Errorf("without room the counter is %v", got)
	}
	if none.Bytes() != 0 || none.Use("one") != (tokens.Use{}) {
		t.Error("without room something is remembered")
	}
	cache := tokens.NewCache(1<<20, set)
	if got := cache.For(tokens.Estimate{}, "a"); got != tokens.Counter(tokens.Estimate{}) {
		t.Errorf("the estimate becomes %v", got)
	}
}

func TestCacheAllocatesNothing(t *testing.T) {
	counter := tokens.NewSet(testcounter.Blocks{})
	cached := tokens.NewCache(1<<20, counter).For(counter[0], "a")
	text := []byte(long)
	if n := testing.AllocsPerRun(100, func() { cached.Count(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
