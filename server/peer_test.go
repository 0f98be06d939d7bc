package server_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// peer is an HTTP/2 connection that sends any frames, also those that no client would send.
type peer struct {
	t    testing.TB
	conn net.Conn

	writing sync.Mutex // guards what follows, up to the next blank line
	*http2.Framer
	headers bytes.Buffer
	hpack   *hpack.Encoder
	last    uint32 // stream

	reading  sync.Mutex // guards what follows
	changed  *sync.Cond
	answers  map[uint32]*answer
	settings map[http2.SettingID]uint32
	goAway   []http2.ErrCode
	window   int            // how much the connection may still send
	granted  map[uint32]int // how much streams may send beyond 65,535 bytes
	ended    bool           // the connection
}

// dialPeer connects and greets the server. Data that it receives uses up the windows that it grants.
func dialPeer(t testing.TB, address string, settings ...http2.Setting) *peer {
	t.Helper()
	return greet(t, dialTCP(t, address), settings...)
}

// greet is dialPeer for a connection that is there.
func greet(t testing.TB, conn net.Conn, settings ...http2.Setting) *peer {
	p := &peer{
		t: t, conn: conn, Framer: http2.NewFramer(conn, conn),
		answers: make(map[uint32]*answer), settings: make(map[http2.SettingID]uint32), window: 65535,
		granted: make(map[uint32]int),
	}
	p.changed = sync.NewCond(&p.reading)
	p.hpack = hpack.NewEncoder(&p.headers)
	p.AllowIllegalWrites = true
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.send([]byte(http2.ClientPreface))
	p.write(func() error { return p.WriteSettings(settings...) })
	go p.read()
	return p
}

// dialTCP returns a connection that is closed when the test ends.
func dialTCP(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// send writes bytes. A connection that the server has closed is no error.
func (p *peer) send(b []byte) {
	p.write(func() error {
		_, err := p.conn.Write(b)
		return err
	})
}

// write writes frames.
func (p *peer) write(f func() error) bool {
	p.writing.Lock()
	defer p.writing.Unlock()
	return f() == nil
}

// block encodes a header list of names and values.
func (p *peer) block(fields ...string) []byte {
	p.headers.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = p.hpack.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return p.headers.Bytes()
}

// headersOf is the header list of a call.
func headersOf(path string, more ...string) []string {
	return append([]string{
		":method", "POST", ":scheme", "http", ":path", path, ":authority", "test",
		"content-type", "application/grpc", "te", "trailers",
	}, more...)
}

// open begins a stream with a header list and returns its number.
func (p *peer) open(end bool, fields ...string) uint32 {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.last += 2
	stream := p.last - 1
	_ = p.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: p.block(fields...), EndHeaders: true, EndStream: end,
	})
	return stream
}

// data sends at most 64 KiB on a stream, once the connection may.
func (p *peer) data(stream uint32, end bool, b []byte) {
	p.reading.Lock()
	for p.window < len(b) && !p.ended {
		p.changed.Wait()
	}
	p.window -= len(b)
	p.reading.Unlock()
	for first := true; first || len(b) > 0; first = false {
		part := b[:min(len(b), 16<<10)]
		b = b[len(part):]
		p.write(func() error { return p.WriteData(stream, end && len(b) == 0, part) })
	}
}

// request makes a call and returns the number of its stream.
func (p *peer) request(method string, message []byte) uint32 {
	stream := p.open(false, headersOf(servicePath+method)...)
	p.data(stream, true, framed(0, message))
	return stream
}

// readToEnd returns what a connection still receives.
func readToEnd(t testing.TB, conn net.Conn) []byte {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	b, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server keeps the connection open")
	}
	return b
}
