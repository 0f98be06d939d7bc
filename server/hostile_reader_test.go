package server_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// largeAnswer is a request of some 45 KB, the answer to which is twice as large.
func largeAnswer(t *testing.T) []byte {
	r := &pb.SelectMemoryRequest{UserScope: "u"}
	for i := range 150 {
		c := candidate(strings.Repeat("m", 250)+string(rune('\u0100'+i)), "text")
		c.SourceRank = uint32(i + 1)
		r.Candidates = append(r.Candidates, c)
	}
	return marshal(t, r)
}

// unread makes calls on a connection that grants no window for their answers, and waits until each is
// refused or held.
func unread(t *testing.T, o *observed, calls int) (*peer, []uint32) {
	t.Helper()
	p := dialPeer(t, o.address, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	request := largeAnswer(t)
	streams := make([]uint32, calls)
	for i := range streams {
		streams[i] = p.request("SelectMemory", request)
	}
	for _, stream := range streams {
		eventually(t, "the call is answered", func() bool { return len(p.answer(stream).header) > 0 })
	}
	return p, streams
}

// Answers that nobody reads are held up to the caller's share; then its calls are refused, and nobody
// else's. What is held is given back when the streams or their connection end.
func TestAnswersThatNobodyReads(t *testing.T) {
	const calls, share = 128, 1 << 20
	for name, end := range map[string]func(p *peer, streams []uint32){
		"the connection ends": func(p *peer, _ []uint32) { p.close() },
		"the streams are reset": func(p *peer, streams []uint32) {
			for _, stream := range streams {
				p.write(func() error { return p.WriteRSTStream(stream, http2.ErrCodeCancel) })
			}
		},
		"the answers are read at last": func(p *peer, streams []uint32) {
			p.write(func() error { return p.WriteWindowUpdate(0, 1<<30) })
			p.write(func() error {
				return p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
			})
			for _, stream := range streams {
				p.wait(stream)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{Limits: server.Limits{BufferedBytes: 2 * share, InFlightBytes: 1 << 30}}, false)
			var p *peer
			var streams []uint32
			checkGrowth(t, 64, func() {
				p, streams = unread(t, o, calls)
				o.isAlive(t)
			})
			held := o.value(t, "promptassembly_answers_bytes")
			refused := p.counted()[codes.ResourceExhausted]
			t.Logf("%d calls are refused, %.0f bytes held", refused, held)
			if held <= share/2 || held > share {
				t.Errorf("%.0f bytes are held, want most of %d", held, share)
			}
			if n := o.value(t, "promptassembly_refusals_total OVERLOADED"); refused == 0 || float64(refused) != n {
				t.Errorf("%d calls are refused, %.0f counted", refused, n)
			}
			checkOverloaded(t, p.answer(streams[calls-1]))

			end(p, streams)
			o.isEmpty(t)
			o.isAlive(t)
		})
	}
}

// checkOverloaded checks the refusal of a call that there was no room for.
func checkOverloaded(t *testing.T, a answer) {
	t.Helper()
	encoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(a.header["grpc-status-details-bin"], "="))
	s := new(statuspb.Status)
	if err == nil {
		err = proto.Unmarshal(encoded, s)
	}
	if err != nil || a.code() != codes.ResourceExhausted {
		t.Fatalf("%v, %v, want RESOURCE_EXHAUSTED with details", a.header, err)
	}
	info, _ := refusalOf(status.FromProto(s).Err())
	retry := slices.ContainsFunc(status.FromProto(s).Details(), func(detail any) bool {
		info, ok := detail.(*errdetails.RetryInfo)
		return ok && info.GetRetryDelay().AsDuration() == 50*time.Millisecond
	})
	if info.GetReason() != "OVERLOADED" || info.GetDomain() != "promptassembly" || len(info.GetMetadata()) > 0 || !retry {
		t.Errorf("details %v, want OVERLOADED and when to retry", s.GetDetails())
	}
	if after := a.header["grpc-retry-pushback-ms"]; after != "50" {
		t.Errorf("pushback %q, want 50", after)
	}
}

// One who grants windows and then reads nothing more is held up by the connection itself.
func TestClientThatStopsReading(t *testing.T) {
	o := observe(t, server.Config{Limits: server.Limits{InFlightBytes: 1 << 30}}, false)
	p, _ := unread(t, o, 128)
	p.reading.Lock() // stops the reading
	p.write(func() error { return p.WriteWindowUpdate(0, 1<<30) })
	p.write(func() error {
		return p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	})
	var before float64
	eventually(t, "nothing more is written", func() bool {
		held := o.value(t, "promptassembly_answers_bytes")
		defer func() { before = held }()
		time.Sleep(50 * time.Millisecond)
		return held == before
	})
	t.Logf("%.0f bytes are held", before)
	if before == 0 {
		t.Error("nothing is held, so that the answers were read or dropped")
	}
	o.isAlive(t)
	p.reading.Unlock()
	p.close()
	o.isEmpty(t)
}

// A stream that ends before its answer is written leaves nothing behind.
func TestCallsThatAreResetWhileAnswered(t *testing.T) {
	o := observe(t, server.Config{}, false)
	p := dialPeer(t, o.address, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	request := largeAnswer(t)
	for range 300 {
		stream := p.request("SelectMemory", request)
		p.write(func() error { return p.WriteRSTStream(stream, http2.ErrCodeCancel) })
	}
	p.wait(p.request("SelectMemory", marshal(t, three()))) // whose answer fits into the window
	o.isEmpty(t)
	o.isAlive(t)
}
