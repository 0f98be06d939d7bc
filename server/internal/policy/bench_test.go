package policy_test

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/policy"
	"github.com/promptassembly/promptassembly/server/memory"
)

// BenchmarkRights looks a caller up and judges a request of 100 candidates.
func BenchmarkRights(b *testing.B) {
	p := example(b)
	for _, test := range []struct {
		name   string
		caller *identity.Caller
		scope  string
	}{
		{"exact", token("harness", ""), "user:mei"},
		{"pattern", spiffe(identity.MTLS, "/ns/prod/sa/harness"), "team/a/1"},
		{"pattern with a segment in the scope", spiffe(identity.MTLS, "/ns/prod/sa/worker"), "namespace/prod/1"},
		{"claim", token("agent", "acme"), "tenant/acme/mei"},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a := policy.Asserted{Memory: true, Scope: test.scope, Policy: memory.DefaultPolicy()}
				for i := range 100 {
					a.Candidate(i, 1)
				}
				if d := p.Rights(test.caller).Judge(&a); d != nil {
					b.Fatal(d)
				}
			}
		})
	}
}

// A caller without placeholders costs no allocation, one with them a single one.
func TestAllocations(t *testing.T) {
	p := example(t)
	for _, test := range []struct {
		name   string
		caller *identity.Caller
		scope  string
		most   float64
	}{
		{"exact", token("harness", ""), "user:mei", 0},
		{"pattern", spiffe(identity.MTLS, "/ns/prod/sa/harness"), "team/a/1", 0},
		{"segment", spiffe(identity.MTLS, "/ns/prod/sa/worker"), "namespace/prod/1", 1},
		{"claim", token("agent", "acme"), "tenant/acme/mei", 1},
	} {
		got := testing.AllocsPerRun(100, func() {
			a := policy.Asserted{Memory: true, Scope: test.scope, Policy: memory.DefaultPolicy()}
			a.Annotate("m", 1)
			a.Candidate(1, 1)
			if d := p.Rights(test.caller).Judge(&a); d != nil {
				t.Error(d)
			}
		})
		if got > test.most {
			t.Errorf("%s: %v allocations, at most %v", test.name, got, test.most)
		}
	}
}
