package server_test

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// noGoroutineStays checks that, of what f starts, nothing runs on.
func noGoroutineStays(t *testing.T, f func()) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	f()
	eventually(t, "no goroutine is left", func() bool { return goleak.Find(before) == nil })
}

// Calls that are begun and then abandoned are refused once there is no room for more; when their
// requests have not come after a second, most of them are cancelled.
func TestAbandonedCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two seconds")
	}
	const connections, calls = 80, 125
	limits := server.Limits{InFlightBytes: 16 << 20}
	const admitted = 16 << 20 / (32 << 10) // at 32 KiB each
	o := observe(t, server.Config{Limits: limits}, false)
	peers := make([]*peer, connections)
	count := func(code codes.Code) (n int) {
		for _, p := range peers {
			n += p.counted()[code]
		}
		return n
	}
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	before := heap.HeapAlloc

	noGoroutineStays(t, func() {
		checkGrowth(t, 160, func() {
			for i := range peers {
				peers[i] = dialPeer(t, o.address)
				for range calls {
					peers[i].open(false, headersOf(servicePath+"SelectMemory")...)
				}
			}
			eventually(t, "all but those there is room for are refused", func() bool {
				return count(codes.ResourceExhausted)+count(codes.Canceled) >= connections*calls-admitted
			})
		})
		t.Logf("%d of %d calls are refused, %.0f bytes are in flight, %d goroutines",
			count(codes.ResourceExhausted), connections*calls,
			o.value(t, "promptassembly_in_flight_bytes"), runtime.NumGoroutine())

		late := 0
		eventually(t, "the others are cancelled, up to those there is room for", func() bool {
			late = count(codes.Canceled)
			return late+count(codes.ResourceExhausted) >= connections*calls-16
		})
		t.Logf("%d calls are cancelled, %.0f bytes held for the others", late, o.value(t, "promptassembly_arriving_bytes"))
		for _, p := range peers {
			p.close()
		}
		o.isEmpty(t)
	})
	clear(peers)
	runtime.GC()
	runtime.GC() // for pools
	runtime.ReadMemStats(&heap)
	t.Logf("the heap is %d KiB larger than at first", (int64(heap.HeapAlloc)-int64(before))>>10)
	if heap.HeapAlloc > before+16<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, heap.HeapAlloc)
	}
	o.isAlive(t)
}

// A request that takes longer than a second needs room for the largest there can be.
func TestRequestsThatTrickleIn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	o := observe(t, server.Config{Limits: server.Limits{BufferedBytes: 40 << 20, CallerShare: 0.5}}, false)
	p := dialPeer(t, o.address)
	message := framed(0, marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}))
	var streams [2]uint32
	for i := range streams {
		streams[i] = p.open(false, headersOf(servicePath+"SelectMemory")...)
		p.data(streams[i], false, message[:6])
	}
	cancelled := func() int { return p.counted()[codes.Canceled] }
	eventually(t, "one of them is cancelled", func() bool { return cancelled() > 0 })
	if held := o.value(t, "promptassembly_arriving_bytes"); held != 16<<20 {
		t.Errorf("%.0f bytes are held for the other, want 16 MiB", held)
	}
	o.isAlive(t)
	for _, stream := range streams {
		p.data(stream, true, message[6:])
	}
	for _, stream := range streams {
		if a := p.wait(stream); a.code() != codes.OK && (a.code() != codes.Canceled || a.header["grpc-status-details-bin"] != "") {
			t.Errorf("answered with %v", a.header)
		}
	}
	if n := cancelled(); n != 1 {
		t.Errorf("%d calls are cancelled, want 1", n)
	}
	o.isEmpty(t)
}

// A call's time begins with its headers, and ends also where the caller does not ask for it.
func TestCallTimeout(t *testing.T) {
	o := observe(t, server.Config{Limits: server.Limits{CallTimeout: 50 * time.Millisecond}}, false)
	p := dialPeer(t, o.address)
	for _, headers := range [][]string{nil, {"grpc-timeout", "1H"}} {
		stream := p.open(false, headersOf(servicePath+"SelectMemory", headers...)...)
		p.data(stream, false, []byte{0, 0, 0})
		if a := p.wait(stream); a.code() != codes.DeadlineExceeded {
			t.Errorf("%v: %v, want DEADLINE_EXCEEDED", headers, a.header)
		}
	}
	o.isEmpty(t)
	o.isAlive(t)
}

// A connection has no more calls than it may, whatever it sends.
func TestLimitOfStreams(t *testing.T) {
	const limit = 4
	o := observe(t, server.Config{Limits: server.Limits{Streams: limit}}, false)
	p := dialPeer(t, o.address)
	var streams [10]uint32
	for i := range streams {
		streams[i] = p.open(false, headersOf(servicePath+"SelectMemory")...)
	}
	for i, stream := range streams {
		if i < limit {
			continue
		}
		if a := p.wait(stream); a.reset != http2.ErrCodeRefusedStream {
			t.Errorf("stream %d: %v, want REFUSED_STREAM", i, a)
		}
	}
	series := "grpc_server_started_total SelectMemory " + serviceName + " unary"
	if n := o.value(t, series); n != limit {
		t.Errorf("%.0f calls are begun, want %d", n, limit)
	}
	o.isAlive(t)
	for _, stream := range streams[:limit] {
		p.data(stream, true, framed(0, marshal(t, &pb.SelectMemoryRequest{UserScope: "u"})))
		if a := p.wait(stream); a.code() != codes.OK {
			t.Errorf("%v, want OK", a.header)
		}
	}
	o.isEmpty(t)
}
