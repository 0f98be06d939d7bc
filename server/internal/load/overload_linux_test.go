package load

import (
	"flag"
	"syscall"
	"testing"
	"time"
)

var overloadFlag = flag.Duration("overload", time.Minute, "how long the server is loaded with twice its peak")

// overloadTime returns how long the server is loaded with twice its peak.
func overloadTime() time.Duration {
	if testing.Short() {
		return time.Second
	}
	return *overloadFlag
}

// BenchmarkOverload loads the server with twice its peak at 100 candidates. It reports the latency of
// what is answered, also as a ratio to that at 70 % load, how fast the rest is refused, and what the
// server holds during and after.
func BenchmarkOverload(b *testing.B) {
	p := start(b, whole, "")
	request := requestOf(100)
	for b.Loop() {
		g := dial(b, p, spread, nil, request)
		peak := g.peak(b)
		usual := g.open(b.Context(), 0.7*peak, 10*roundTime())
		before := p.collect(b)

		cpu := ownCPU()
		over := g.open(b.Context(), 2*peak, overloadTime())
		cpu = ownCPU() - cpu
		during := p.used(b)
		g.rest()
		after := p.collect(b)

		b.ReportMetric(peak, "peak/s")
		b.ReportMetric(float64(len(over.answered))/overloadTime().Seconds(), "answered/s")
		b.ReportMetric(float64(len(over.refused))/overloadTime().Seconds(), "refused/s")
		b.ReportMetric(float64(over.failed), "failed")
		b.ReportMetric(quantile(usual.answered, 0.99), "p99-ms-at-70%")
		b.ReportMetric(quantile(over.answered, 0.99), "p99-ms-at-200%")
		b.ReportMetric(quantile(over.answered, 0.99)/quantile(usual.answered, 0.99), "p99-ratio")
		b.ReportMetric(quantile(over.refused, 0.99), "p99-ms-refused")
		b.ReportMetric(cpu.Seconds()/overloadTime().Seconds()*100, "generator-%")
		b.ReportMetric(float64(over.late), "late")
		b.ReportMetric(float64(during.Peak>>20), "peak-MiB")
		b.ReportMetric(float64(before.Heap>>10), "heap-KiB-before")
		b.ReportMetric(float64(after.Heap>>10), "heap-KiB-after")
		b.ReportMetric(float64(before.Goroutines), "goroutines-before")
		b.ReportMetric(float64(after.Goroutines), "goroutines-after")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFlood has one caller that makes calls at a tenth of the peak, first alone and then beside
// one in another process that makes them at twice the peak over one connection, and reports the ratio
// of its latencies.
func BenchmarkFlood(b *testing.B) {
	p := start(b, whole, "")
	request := requestOf(100)
	g := dial(b, p, spread, nil, request)
	caller := dial(b, p, 1, nil, request)
	for b.Loop() {
		peak := g.peak(b)
		alone := caller.open(b.Context(), 0.1*peak, 10*roundTime())
		end := startFlood(b, p.address, 2*peak)
		beside := caller.open(b.Context(), 0.1*peak, 10*roundTime())
		flood := end()

		b.ReportMetric(quantile(alone.answered, 0.99), "p99-ms-alone")
		b.ReportMetric(quantile(beside.answered, 0.99), "p99-ms-beside")
		b.ReportMetric(quantile(beside.answered, 0.99)/quantile(alone.answered, 0.99), "p99-ratio")
		b.ReportMetric(float64(len(beside.refused)+beside.failed), "refused")
		b.ReportMetric(float64(flood.Refused), "flood-refused")
		b.ReportMetric(float64(flood.Answered), "flood-answered")
	}
	b.ReportMetric(0, "ns/op")
}

// rest closes the connections and waits for the server to notice.
func (g *generator) rest() {
	g.close()
	time.Sleep(time.Second)
}

// ownCPU returns the processor time that this process has used.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
