package server_test

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// Calls whose requests do not come take no room from those that can be answered.
func TestBareHeadersTakeNoRoom(t *testing.T) {
	o := observe(t, server.Config{Limits: server.Limits{InFlightBytes: 1 << 20}}, false)
	for range 4 {
		p := dialPeer(t, o.address)
		for range 100 {
			p.open(false, headersOf(servicePath+"SelectMemory")...)
		}
	}
	eventually(t, "no room is taken", func() bool { return o.value(t, "promptassembly_in_flight_bytes") == 0 })
	for range 20 {
		o.isAlive(t)
	}
}

// Requests that trickle in take room from each other alone.
func TestTricklingTakesNoRoomOfAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	o := observe(t, server.Config{Limits: server.Limits{BufferedBytes: 64 << 20}}, false)
	var peers [2]*peer
	for i := range peers {
		peers[i] = dialPeer(t, o.address)
		for range 8 {
			peers[i].data(peers[i].open(false, headersOf(servicePath+"SelectMemory")...), false, []byte{0, 0, 0, 1})
		}
	}
	eventually(t, "they have taken all there is", func() bool {
		return o.value(t, "promptassembly_arriving_bytes") == 64<<20
	})
	for range 20 {
		o.isAlive(t)
	}
}

// Health checks and reflection are bounded as the service's own calls are: a message that does not
// come to its end is charged for, and not for long.
func TestSlowMessagesOfOtherServices(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	const message = 15 << 20
	o := observe(t, server.Config{Limits: server.Limits{BufferedBytes: 32 << 20, CallTimeout: 3 * time.Second}}, false)
	for _, path := range []string{
		"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	} {
		t.Run(path, func(t *testing.T) {
			p := dialPeer(t, o.address)
			defer p.close()
			var streams [4]uint32
			for i := range streams {
				streams[i] = p.open(false, headersOf(path)...)
				p.data(streams[i], false, append([]byte{0}, byte(message>>24), byte(message>>16&0xFF), byte(message>>8&0xFF), 0))
			}
			eventually(t, "they are charged for", func() bool { return o.value(t, "promptassembly_arriving_bytes") > 0 })
			eventually(t, "those without room are cancelled", func() bool { return p.counted()[codes.Canceled] >= 3 })
			eventually(t, "all have ended", func() bool {
				return p.counted()[codes.Canceled]+p.counted()[codes.DeadlineExceeded] == 4
			})
			o.isEmpty(t)
		})
	}
}

// Names that are too large are not looked up, kept or sent back.
func TestLargeMessagesOfOtherServices(t *testing.T) {
	o := observe(t, server.Config{}, false)
	conn := dial(t, o.address)
	name := strings.Repeat("n", 5000)
	_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
	checkCode(t, err, codes.ResourceExhausted)
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: name})
	if err == nil {
		_, err = watch.Recv()
	}
	checkCode(t, err, codes.ResourceExhausted)
}

// A compressed message is none of theirs, either.
func TestCompressedMessagesOfOtherServices(t *testing.T) {
	o := observe(t, server.Config{}, false)
	p := dialPeer(t, o.address)
	for _, path := range []string{
		"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	} {
		stream := p.open(false, headersOf(path, "grpc-encoding", "gzip")...)
		if a := p.wait(stream); a.code() != codes.Unimplemented {
			t.Errorf("%s: %v, want UNIMPLEMENTED", path, a.header)
		}
	}
}

// A caller that does not read its answers is disconnected.
func TestUnreadTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three seconds")
	}
	o := observe(t, server.Config{Limits: server.Limits{UnreadTimeout: time.Second}}, false)
	p, _ := unread(t, o, 2)
	p.waitForEnd()
	o.isEmpty(t)
	o.hasConnections(t, 0)

	p = dialPeer(t, o.address, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	p.write(func() error { return p.WriteWindowUpdate(0, 1<<20) })
	if a := p.wait(p.request("SelectMemory", largeAnswer(t))); a.code() != codes.OK {
		t.Errorf("%v, want an answer", a.header)
	}
	time.Sleep(1500 * time.Millisecond)
	if a := p.wait(p.request("SelectMemory", marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}))); a.code() != codes.OK {
		t.Errorf("after an answer that was read: %v", a.header)
	}
}

// What may be held of requests that do not come to their end is bounded, however fast they come at
// first.
func TestLargeRequestsThatDoNotEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two seconds")
	}
	const calls, message = 60, 15 << 20
	o := observe(t, server.Config{}, false)
	client := http2Client(t)
	ended := make(chan struct{})
	checkGrowth(t, 400, func() {
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				body := io.MultiReader(bytes.NewReader([]byte{0, 0, 0xF0, 0, 0}),
					io.LimitReader(zeros{}, message-1), until{ended}) // a byte is missing
				post(t, client, o.address, "SelectMemory", body, nil)
			})
		}
		eventually(t, "they are slow", func() bool { return o.value(t, "promptassembly_arriving_bytes") > 0 })
		o.isAlive(t)
		eventually(t, "what is left of them is charged for", func() bool {
			held := o.value(t, "promptassembly_arriving_bytes")
			return held > 0 && int64(held)%(16<<20) == 0
		})
		close(ended)
		all.Wait()
	})
	o.isEmpty(t)
}

// zeros reads as zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// until is a body's end, which comes when it is told to.
type until struct{ ended <-chan struct{} }

func (u until) Read([]byte) (int, error) {
	<-u.ended
	return 0, io.EOF
}
