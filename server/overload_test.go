package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// held is a server on which calls last until they are let go.
type held struct {
	*observed
	letGo chan struct{}
}

// hold serves a server whose calls with a tokenizer "hold" last.
func hold(t *testing.T, limits server.Limits, tracing bool) held {
	t.Helper()
	letGo := make(chan struct{})
	lasting := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if r, ok := req.(*pb.SelectMemoryRequest); ok && r.GetTokenizer() == "hold" {
			select {
			case <-letGo:
			case <-ctx.Done():
			}
			r.Tokenizer = ""
		}
		return next(ctx, req)
	}
	o := observe(t, server.Config{
		Limits: limits, Interceptors: []grpc.UnaryServerInterceptor{lasting},
	}, tracing)
	return held{o, letGo}
}

// begin begins calls that last, and waits until each holds its 32 KiB.
func (h held) begin(t *testing.T, p *peer, calls int) []uint32 {
	t.Helper()
	c := candidate("m", "")
	request := &pb.SelectMemoryRequest{UserScope: "u", Tokenizer: "hold", Candidates: []*pb.MemoryContextCandidate{c}}
	const encoded = (32<<10 - 768) / 2                          // which counts twice, beside 768 bytes for the candidate
	c.Text = strings.Repeat("x", encoded-proto.Size(request)-6) // the lengths of text and candidate take more bytes
	for proto.Size(request) < encoded {
		c.Text += "x"
	}
	want := h.value(t, "promptassembly_in_flight_bytes") + float64(calls*32<<10)
	streams := make([]uint32, calls)
	for i := range streams {
		streams[i] = p.request("SelectMemory", marshal(t, request))
	}
	eventually(t, "the calls are in flight", func() bool { return h.value(t, "promptassembly_in_flight_bytes") == want })
	return streams
}

// finish lets the calls go and checks that they are answered.
func (h held) finish(t *testing.T, p *peer, streams []uint32) {
	t.Helper()
	close(h.letGo)
	for _, stream := range streams {
		if a := p.wait(stream); a.code() != codes.OK {
			t.Errorf("%v, want OK", a.header)
		}
	}
	h.isEmpty(t)
}

// A call beyond what may be in flight is refused before its request comes, whoever makes it.
func TestOverload(t *testing.T) {
	o := hold(t, server.Limits{InFlightBytes: 64 << 10, CallerShare: 1}, false)
	first, second := dialPeer(t, o.address), dialPeer(t, o.address)
	if limit := o.value(t, "promptassembly_in_flight_limit_bytes"); limit != 64<<10 {
		t.Errorf("the limit is shown as %.0f bytes", limit)
	}
	streams := o.begin(t, first, 2)
	for _, p := range []*peer{first, second} {
		for _, method := range []string{"SelectMemory", "PlanPrompt", "ListTokenizers"} {
			checkOverloaded(t, p.wait(p.open(false, headersOf(servicePath+method)...)))
		}
	}
	// What is not the service's own is answered.
	if a := second.wait(second.request("Other", nil)); a.code() != codes.Unimplemented {
		t.Errorf("no method: %v, want UNIMPLEMENTED", a.header)
	}
	health := second.open(false, headersOf("/grpc.health.v1.Health/Check")...)
	second.data(health, true, framed(0, nil))
	if a := second.wait(health); a.code() != codes.OK {
		t.Errorf("health: %v, want OK", a.header)
	}
	o.finish(t, first, streams)
	o.isAlive(t)
}

// One caller's flood is refused up to its share, and others are not.
func TestFloodOfOneCaller(t *testing.T) {
	o := hold(t, server.Limits{InFlightBytes: 256 << 10, CallerShare: 0.5}, false)
	p := dialPeer(t, o.address)
	streams := o.begin(t, p, 4)
	for range 50 {
		checkOverloaded(t, p.wait(p.open(false, headersOf(servicePath+"SelectMemory")...)))
		o.isAlive(t)
	}
	o.finish(t, p, streams)
}

// A call that is larger than its caller's share is admitted when the caller has no other in flight.
func TestCallLargerThanTheShare(t *testing.T) {
	o := hold(t, server.Limits{InFlightBytes: 256 << 10, CallerShare: 0.5}, false)
	p := dialPeer(t, o.address, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	p.write(func() error { return p.WriteWindowUpdate(0, 1<<20) })
	large := largeAnswer(t) // counts as more than 150 KiB
	streams := o.begin(t, p, 1)
	checkOverloaded(t, p.wait(p.request("SelectMemory", large)))
	o.finish(t, p, streams)
	if a := p.wait(p.request("SelectMemory", large)); a.code() != codes.OK {
		t.Errorf("%v, want OK", a.header)
	}
	o.isEmpty(t)
}

// Whatever becomes of a call, it gives back what it held.
func TestRoomIsGivenBack(t *testing.T) {
	wait := make(chan struct{})
	late := make(chan struct{})
	handle := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		switch req.(interface{ GetTokenizer() string }).GetTokenizer() {
		case "panic":
			panic("value of a panic")
		case "wait":
			wait <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		case "wait and answer":
			wait <- struct{}{}
			<-ctx.Done()
			<-late // the deadline may pass here first, and an answer would be in time
			return new(pb.SelectMemoryResponse), nil
		case "too large":
			return &pb.SelectMemoryResponse{Plan: &pb.MemoryContextPlan{Context: strings.Repeat("x", 1<<20)}}, nil
		case "nothing":
			return nil, nil //nolint:nilnil // what a faulty interceptor may do
		default:
			return next(ctx, req)
		}
	}
	o := observe(t, server.Config{
		Limits:       server.Limits{InFlightBytes: 64 << 10, CallerShare: 1, BufferedBytes: 512 << 10},
		Interceptors: []grpc.UnaryServerInterceptor{handle},
	}, false)
	conn := dial(t, o.address)
	for name, test := range map[string]struct {
		request proto.Message
		code    codes.Code
	}{
		"answered":         {selected(nil), codes.OK},
		"invalid":          {new(pb.SelectMemoryRequest), codes.InvalidArgument},
		"no tokenizer":     {selected(func(r *pb.SelectMemoryRequest) { r.Tokenizer = "other" }), codes.InvalidArgument},
		"blank":            {planned(func(r *pb.PlanPromptRequest) { r.Segments[0] = blank() }), codes.FailedPrecondition},
		"undecodable":      {&pb.MemoryDecision{MemoryId: "m", CandidateChars: 1, Position: 1}, codes.InvalidArgument},
		"panic":            {selected(func(r *pb.SelectMemoryRequest) { r.Tokenizer = "panic" }), codes.Internal},
		"nothing answered": {selected(func(r *pb.SelectMemoryRequest) { r.Tokenizer = "nothing" }), codes.Internal},
		"no room for it":   {selected(func(r *pb.SelectMemoryRequest) { r.Tokenizer = "too large" }), codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			method := "SelectMemory"
			if _, ok := test.request.(*pb.PlanPromptRequest); ok {
				method = "PlanPrompt"
			}
			_, err := callBytes(t, conn, method, marshal(t, test.request))
			checkCode(t, err, test.code)
			o.isEmpty(t)
		})
	}
	gone := func(name string) { // the caller is
		if name == "wait and answer" {
			late <- struct{}{}
		}
	}
	for _, name := range []string{"wait", "wait and answer"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-wait
				cancel()
			}()
			err := invoke(ctx, t, conn, selected(func(r *pb.SelectMemoryRequest) { r.Tokenizer = name }), nil)
			checkCode(t, err, codes.Canceled)
			gone(name)
			o.isEmpty(t)

			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			go func() { <-wait }()
			err = invoke(ctx, t, conn, selected(func(r *pb.SelectMemoryRequest) { r.Tokenizer = name }), nil)
			checkCode(t, err, codes.DeadlineExceeded)
			gone(name)
			o.isEmpty(t)
		})
	}
	o.isAlive(t)
	if strings.Contains(o.log.String(), "value of") {
		t.Errorf("the log holds a panic's value:\n%s", o.log)
	}
}

func blank() *pb.PromptSegment {
	return &pb.PromptSegment{Name: "rules", Required: new(true), Body: &pb.PromptSegment_Text{Text: " "}}
}
