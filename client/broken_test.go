package client_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/promptassembly/promptassembly/client"
)

// What befalls an answer on its way, and whether the client asks again. The code is what gRPC makes
// of it.
func TestBrokenAnswers(t *testing.T) {
	reset := func(code http2.ErrCode) func(wire, uint32) {
		return func(w wire, stream uint32) { _ = w.WriteRSTStream(stream, code) }
	}
	resetLater := func(code http2.ErrCode) func(wire, uint32) {
		return func(w wire, stream uint32) {
			w.begin(stream)
			_ = w.WriteRSTStream(stream, code)
		}
	}
	answer := func(fields ...string) func(wire, uint32) {
		return func(w wire, stream uint32) { w.headers(stream, true, fields...) }
	}
	for name, test := range map[string]struct {
		first func(wire, uint32)
		code  codes.Code
		again bool
	}{
		"reset NO_ERROR":            {reset(http2.ErrCodeNo), codes.Internal, true},
		"reset PROTOCOL_ERROR":      {reset(http2.ErrCodeProtocol), codes.Internal, true},
		"reset INTERNAL_ERROR":      {reset(http2.ErrCodeInternal), codes.Internal, true},
		"reset FLOW_CONTROL_ERROR":  {reset(http2.ErrCodeFlowControl), codes.ResourceExhausted, true},
		"reset STREAM_CLOSED":       {reset(http2.ErrCodeStreamClosed), codes.Internal, true},
		"reset CANCEL":              {reset(http2.ErrCodeCancel), codes.Canceled, true},
		"reset ENHANCE_YOUR_CALM":   {reset(http2.ErrCodeEnhanceYourCalm), codes.ResourceExhausted, true},
		"reset INADEQUATE_SECURITY": {reset(http2.ErrCodeInadequateSecurity), codes.PermissionDenied, false},

		"reset INTERNAL_ERROR in the message": {resetLater(http2.ErrCodeInternal), codes.Internal, true},
		"reset CANCEL in the message":         {resetLater(http2.ErrCodeCancel), codes.Canceled, true},
		"reset REFUSED_STREAM in the message": {resetLater(http2.ErrCodeRefusedStream), codes.OK, true}, // gRPC asks again

		"connection closed": {func(w wire, _ uint32) { _ = w.Close() }, codes.Unavailable, true},
		"connection closed in the message": {func(w wire, stream uint32) {
			w.begin(stream)
			_ = w.Close()
		}, codes.Unavailable, true},
		"connection reset in the message": {func(w wire, stream uint32) {
			w.begin(stream)
			_ = w.Conn.(*net.TCPConn).SetLinger(0)
			_ = w.Close()
		}, codes.Unavailable, true},
		"going away, with the call": {func(w wire, stream uint32) {
			_ = w.WriteGoAway(stream, http2.ErrCodeNo, nil)
			_ = w.Close()
		}, codes.Unavailable, true},
		"half a message, then the end": {func(w wire, stream uint32) {
			w.begin(stream)
			_ = w.WriteData(stream, true, nil)
		}, codes.Internal, true},
		"half a message, then OK": {func(w wire, stream uint32) {
			w.begin(stream)
			w.headers(stream, true, "grpc-status", "0")
		}, codes.Internal, true},
		"no message, then OK": {answer(":status", "200", "content-type", "application/grpc", "grpc-status", "0"), codes.Internal, true},

		"a gateway without a server": {answer(":status", "503"), codes.Unavailable, true},
		"a gateway that is too busy": {answer(":status", "429"), codes.Unavailable, true},
		"a gateway without a route":  {answer(":status", "404"), codes.Unimplemented, false},
		"a gateway that forbids":     {answer(":status", "403"), codes.PermissionDenied, false},
		"no message of this kind": {func(w wire, stream uint32) {
			w.headers(stream, false, ":status", "200", "content-type", "application/grpc")
			_ = w.WriteData(stream, false, []byte{0, 0, 0, 0, 1, 0xFF})
			w.headers(stream, true, "grpc-status", "0")
		}, codes.Internal, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := list(t.Context(), dial(t, []string{wireServer(t, test.first)}, client.WithAttempts(1)))
			if status.Code(err) != test.code {
				t.Errorf("in one attempt: %v, want %v", err, test.code)
			}
			answer, err := list(t.Context(), dial(t, []string{wireServer(t, test.first)}, noPause()))
			if again := answer.GetUnicodeVersion() == "second"; again != test.again {
				t.Errorf("got %v, %v; want it asked again: %v", answer, err, test.again)
			}
		})
	}
}

// A connection that breaks within a large answer, wherever it does.
func TestCutWithinALargeAnswer(t *testing.T) {
	_, address := realServer(t)
	req := wholeRequest(30, 200_000) // 6 MB
	for _, after := range []int64{200, 1 << 20, 5 << 20} {
		listener := listen(t)
		var cut atomic.Bool
		go func() {
			for {
				near, err := listener.Accept()
				if err != nil {
					return
				}
				far, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(far, near)
					_ = far.Close()
				}()
				go func() {
					if cut.CompareAndSwap(false, true) {
						_, _ = io.CopyN(near, far, after)
						_ = near.(*net.TCPConn).SetLinger(0) // a reset
					} else {
						_, _ = io.Copy(near, far)
					}
					_ = near.Close()
				}()
			}
		}()
		answer, err := dial(t, []string{listener.Addr().String()}).SelectMemory(t.Context(), req)
		if n := len(answer.GetPlan().GetContext()); err != nil || n < 6_000_000 || !cut.Load() {
			t.Errorf("cut after %d bytes: a context of %d bytes, %v", after, n, err)
		}
	}
}
