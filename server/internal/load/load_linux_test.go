package load

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

const (
	rounds     = 7
	concurrent = 64
	spread     = 8 // connections
)

var roundFlag = flag.Duration("round", time.Second, "how long a round of a comparison takes; a rate is held ten times as long")

// roundTime returns how long a round takes.
func roundTime() time.Duration {
	if testing.Short() {
		return 100 * time.Millisecond
	}
	return *roundFlag
}

// BenchmarkRatio compares the processor time that a call takes with that of the baseline, in
// alternating rounds: ratio is the median of baseline over whole.
func BenchmarkRatio(b *testing.B) {
	for _, secured := range []bool{false, true} {
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", transportName(secured), n), func(b *testing.B) {
				folder, transport := certificatesFor(b, secured)
				request := requestOf(n)
				servers := []*process{start(b, whole, folder), start(b, baseline, folder)}
				var generators []*generator
				for _, s := range servers {
					generators = append(generators, dial(b, s, spread, transport, request))
				}
				for b.Loop() {
					costs, ratios := compare(b, servers, generators, concurrent)
					b.ReportMetric(median(ratios), "ratio")
					b.ReportMetric(median(costs[0]), "µs/call")
					b.ReportMetric(median(costs[1]), "µs/baseline-call")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// compare loads two servers in alternating rounds, with that many calls at a time, and returns what a call of each costs, in µs of
// processor time, and that of the second over that of the first.
func compare(b *testing.B, servers []*process, generators []*generator, concurrent int) (costs [2][]float64, ratios []float64) {
	b.Helper()
	for round := range rounds + 1 {
		var cost [2]float64
		for i, g := range generators {
			before := servers[i].used(b).CPU
			calls := g.closed(b, concurrent, roundTime())
			cost[i] = float64((servers[i].used(b).CPU - before).Microseconds()) / float64(calls)
		}
		if round == 0 {
			continue // to warm up
		}
		costs[0], costs[1] = append(costs[0], cost[0]), append(costs[1], cost[1])
		ratios = append(ratios, cost[1]/cost[0])
	}
	return costs, ratios
}

// BenchmarkLatency reports how many calls a second are answered at most, with 64 at a time, and how
// long calls take at 70 % of that, at random intervals.
func BenchmarkLatency(b *testing.B) {
	for _, secured := range []bool{false, true} {
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", transportName(secured), n), func(b *testing.B) {
				folder, transport := certificatesFor(b, secured)
				g := dial(b, start(b, whole, folder), spread, transport, requestOf(n))
				for b.Loop() {
					peak := g.peak(b)
					o := g.open(b.Context(), 0.7*peak, 10*roundTime())
					b.ReportMetric(peak, "calls/s")
					b.ReportMetric(quantile(o.answered, 0.5), "p50-ms")
					b.ReportMetric(quantile(o.answered, 0.99), "p99-ms")
					b.ReportMetric(float64(len(o.refused)), "refused")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// peak returns how many calls a second are answered, with 64 at a time.
func (g *generator) peak(b *testing.B) float64 {
	b.Helper()
	g.closed(b, concurrent, roundTime()) // to warm up
	const times = 3
	return float64(g.closed(b, concurrent, times*roundTime())) / (times * roundTime()).Seconds()
}

func transportName(secured bool) string {
	if secured {
		return "mTLS"
	}
	return "plaintext"
}

func certificatesFor(b *testing.B, secured bool) (folder string, transport credentials.TransportCredentials) {
	b.Helper()
	if !secured {
		return "", nil
	}
	return clientCredentials(b)
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
