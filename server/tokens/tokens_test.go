package tokens_test

import (
	"slices"
	"testing"

	"github.com/promptassembly/promptassembly/server/tokens"
)

// named is a counter of another name, which counts bytes.
type named string

func (n named) Name() string        { return string(n) }
func (named) Version() string       { return "7" }
func (named) Source() string        { return "a test" }
func (named) Exact() bool           { return true }
func (named) Additive() bool        { return true }
func (named) Count(text []byte) int { return len(text) }

func TestSet(t *testing.T) {
	sent := []tokens.Counter{named("o200k"), tokens.Estimate{}, named("Zeta"), named("estimate2"), named("élan"), named("es")}
	set := tokens.NewSet(sent...)
	if want := []string{"Zeta", "es", "estimate", "estimate2", "o200k", "élan"}; !slices.Equal(set.Names(), want) {
		t.Errorf("names %q, want %q", set.Names(), want)
	}
	if sent[0].Name() != "o200k" {
		t.Error("the counters were sorted where they lay")
	}
	for _, c := range sent {
		if got, ok := set.Find(c.Name()); !ok || got != c {
			t.Errorf("by the name %q: %v, %t", c.Name(), got, ok)
		}
	}
	if got, ok := set.Find(""); !ok || got != (tokens.Estimate{}) {
		t.Errorf("without a name: %v, %t", got, ok)
	}
	for _, name := range []string{"gpt", "Estimate", "estimate ", " estimate", "e", "zz", "A", "ｅstimate"} {
		if got, ok := set.Find(name); ok || got != nil {
			t.Errorf("by the name %q: %v, %t", name, got, ok)
		}
	}
}

func TestSetWithoutEstimate(t *testing.T) {
	set := tokens.NewSet(named("o200k"))
	if got, ok := set.Find(""); ok || got != nil {
		t.Errorf("no estimate is there, but without a name it is %v, %t", got, ok)
	}
	if got := tokens.NewSet().Names(); len(got) != 0 {
		t.Errorf("an empty set has the names %q", got)
	}
}

func TestEstimateDescribesItself(t *testing.T) {
	var e tokens.Estimate
	if e.Name() != "estimate" || e.Version() != "1" || e.Source() != "built in" || e.Exact() || !e.Additive() {
		t.Errorf("name %q, version %q, source %q, exact %t, additive %t", e.Name(), e.Version(), e.Source(), e.Exact(), e.Additive())
	}
}
