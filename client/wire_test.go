package client_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// wire is one connection of a server written frame by frame, for what gRPC's own never does.
type wire struct {
	*http2.Framer
	net.Conn
}

// wireServer answers its first call as a test wants it, frame by frame, and those after it with the
// answer of good("second"). It is always healthy. It runs for the length of the test.
func wireServer(t *testing.T, first func(w wire, stream uint32)) string {
	t.Helper()
	listener := listen(t)
	calls := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go wire{http2.NewFramer(conn, conn), conn}.serve(func(w wire, stream uint32) {
				calls <- struct{}{}
				if len(calls) == 1 {
					first(w, stream)
					return
				}
				message, _ := proto.Marshal(good("second"))
				w.headers(stream, false, ":status", "200", "content-type", "application/grpc")
				_ = w.WriteData(stream, false, append([]byte{0, 0, 0, 0, byte(len(message))}, message...))
				w.headers(stream, true, "grpc-status", "0")
			})
		}
	}()
	return listener.Addr().String()
}

func (w wire) serve(call func(w wire, stream uint32)) {
	if _, err := io.CopyN(io.Discard, w.Conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	_ = w.WriteSettings()
	w.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	health := map[uint32]bool{}
	for {
		frame, err := w.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = w.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				_ = w.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			health[frame.StreamID] = frame.PseudoValue("path") == "/grpc.health.v1.Health/Watch"
		case *http2.DataFrame:
			switch {
			case !frame.StreamEnded():
			case health[frame.StreamID]:
				w.headers(frame.StreamID, false, ":status", "200", "content-type", "application/grpc")
				_ = w.WriteData(frame.StreamID, false, []byte{0, 0, 0, 0, 2, 1 << 3, 1}) // SERVING
			default:
				call(w, frame.StreamID)
			}
		}
	}
}

func (w wire) headers(stream uint32, last bool, fields ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = w.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: last,
	})
}

// begin starts an answer of 100 bytes and sends ten of them.
func (w wire) begin(stream uint32) {
	w.headers(stream, false, ":status", "200", "content-type", "application/grpc")
	_ = w.WriteData(stream, false, append([]byte{0, 0, 0, 0, 100}, "ten  bytes"...))
}
