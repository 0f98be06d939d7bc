package server_test

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/promptassembly/promptassembly/server"
)

// hostileBody is a body of many bytes, of which few are held.
type hostileBody struct {
	first, rest []byte // each at most a frame; rest is repeated
	size        int
}

func (b hostileBody) at(sent int) []byte {
	if sent == 0 {
		return b.first
	}
	return b.rest[:min(len(b.rest), b.size-sent)]
}

// pour sends a body on a stream as far as flow control lets it, until the call is answered; with
// beyond, also afterwards. It returns how many bytes were sent.
func (p *peer) pour(stream uint32, body hostileBody, beyond bool) (sent int) {
	const window = 65535
	for sent < body.size {
		part := body.at(sent)
		p.reading.Lock()
		answered := func() bool { return p.answers[stream] != nil && p.answers[stream].ended }
		stopped := func() bool { return p.ended || !beyond && answered() }
		for !stopped() && (p.window < len(part) || !answered() && window+p.granted[stream]-sent < len(part)) {
			p.changed.Wait()
		}
		stop := stopped()
		if !stop {
			p.window -= len(part)
		}
		p.reading.Unlock()
		end := sent+len(part) == body.size
		if stop || !p.write(func() error { return p.WriteData(stream, end, part) }) {
			break
		}
		sent += len(part)
	}
	return sent
}

// Calls without an identity are refused before their bodies, which take no memory: neither plain, nor
// compressed, nor sent on regardless of the answer.
func TestHostileBodies(t *testing.T) {
	const connections, calls, size = 8, 200, 16 << 20
	random := make([]byte, 16<<10)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	prefix := func(flag byte) []byte { return binary.BigEndian.AppendUint32([]byte{flag}, size-5) }
	bomb := framed(1, compress(make([]byte, 1<<20)))
	bodies := map[string]hostileBody{
		"plain": {prefix(0), random, size},
		"gzip":  {prefix(1), random, size},
		"bomb":  {bomb, random, size},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			f := hostileServe(t, false, server.Config{})
			headers := headersOf(servicePath + "SelectMemory")
			if name != "plain" {
				headers = append(headers, "grpc-encoding", "gzip")
			}
			peers := make([]*peer, connections)
			for i := range peers {
				peers[i] = f.peer(t, nil)
			}
			another := f.peer(t, nil)
			token := hostileBearers(f.idp.token(nil))
			f.answers(t, another, "", token...)
			served := 0
			var mu sync.Mutex
			sent := 0
			grown := heapGrowth(func() {
				var all sync.WaitGroup
				for i := range calls {
					p := peers[i%connections]
					all.Go(func() {
						stream := p.open(false, headers...)
						n := p.pour(stream, body, i < 2)
						mu.Lock()
						sent += n
						mu.Unlock()
						if a := p.wait(stream); a.code() != codes.Unauthenticated || hostileReason(a) != "IDENTITY_MISSING" {
							t.Errorf("answered with %+v", a)
						}
					})
				}
				done := make(chan struct{})
				go func() { defer close(done); all.Wait() }()
				for ended := false; !ended; {
					stream := another.open(false, headersOf(servicePath+"SelectMemory", token...)...)
					another.data(stream, true, framed(0, hostileClaim(t)))
					if a := another.wait(stream); a.code() != codes.OK {
						t.Errorf("another caller: %+v", a)
					}
					served++
					select {
					case <-done:
						ended = true
					case <-time.After(5 * time.Millisecond):
					}
				}
			})
			t.Logf("%d calls, %d MiB sent of %d: the heap grew by %d KiB, another caller was answered %d times",
				calls, sent>>20, calls*body.size>>20, grown>>10, served)
			if grown > 16<<20 {
				t.Errorf("the heap grew by %d KiB, want at most 16 MiB", grown>>10)
			}
			if n := f.value(t, "promptassembly_refusals_total IDENTITY_MISSING"); n != calls {
				t.Errorf("%.0f refusals are counted, want %d", n, calls)
			}
			refused := 0
			for _, line := range f.lines(t) {
				if line["reason"] == "IDENTITY_MISSING" && line["request_bytes"] == 0.0 {
					refused++
				}
			}
			if refused != calls {
				t.Errorf("%d refusals are logged, want %d", refused, calls)
			}
			f.isEmpty(t)
		})
	}
}

// Who sends beyond the window of a stream that nobody reads is reset, and takes no more than it.
func TestHostileWindows(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	p := f.peer(t, nil)
	body := make([]byte, 16<<10)
	checkGrowth(t, 16, func() {
		for range 100 {
			stream := p.open(false, headersOf(servicePath+"SelectMemory")...)
			for range 8 {
				p.data(stream, false, body)
			}
			if a := p.wait(stream); a.code() != codes.Unauthenticated && a.reset != http2.ErrCodeFlowControl {
				t.Errorf("answered with %+v", a)
			}
		}
	})
	f.answers(t, f.peer(t, nil), "", hostileBearers(f.idp.token(nil))...)
	f.isEmpty(t)
}
