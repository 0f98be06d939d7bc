package server_test

import (
	"crypto/tls"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/promptassembly/promptassembly/server"
)

// A header list that is too large ends its stream, and one that does not end, its connection.
func TestLargeHeaderLists(t *testing.T) {
	large := strings.Repeat("x", 60<<10)
	small := headersOf(servicePath + "SelectMemory")
	for range 5000 {
		small = append(small, "n", "v") // 34 bytes each
	}
	for name, test := range map[string]struct {
		limit  uint32
		fields []string
		reset  http2.ErrCode
		closed bool
	}{
		"within the limit": {limit: 64 << 10, fields: headersOf(servicePath+"SelectMemory", "large", large)},
		"beyond the limit": {limit: 64 << 10, fields: headersOf(servicePath+"SelectMemory", "large", large, "other", large), reset: http2.ErrCodeFrameSize},
		"many fields":      {limit: 64 << 10, fields: small, reset: http2.ErrCodeFrameSize},
		"one large text":   {limit: 64 << 10, fields: headersOf(servicePath+"SelectMemory", "large", large+large), closed: true},
		"beyond a low limit": {
			limit: 1000, fields: headersOf(servicePath+"SelectMemory", "a", large[:900], "b", large[:900]), reset: http2.ErrCodeFrameSize,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{Limits: server.Limits{HeaderBytes: test.limit}}, false)
			checkGrowth(t, 16, func() {
				p := dialPeer(t, o.address)
				openInParts(p, test.fields)
				a := p.wait(1)
				if test.closed {
					p.waitForEnd()
				} else if a.reset != test.reset || test.reset == 0 && a.code() != codes.InvalidArgument {
					t.Errorf("%+v, want reset by %v, or else an invalid request", a, test.reset)
				}
				o.isAlive(t)
			})
			o.isEmpty(t)
		})
	}
}

// openInParts opens stream 1 with an empty message and a header list of any length.
func openInParts(p *peer, fields []string) {
	p.write(func() error {
		block := p.block(fields...)
		for first := true; first || len(block) > 0; first = false {
			part := block[:min(len(block), 16<<10)]
			block = block[len(part):]
			if first {
				_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: part, EndHeaders: len(block) == 0})
			} else if err := p.WriteContinuation(1, len(block) == 0, part); err != nil {
				return err
			}
		}
		return nil
	})
	p.data(1, true, framed(0, nil))
}

// A header list that goes on for ever, in parts that are empty, repeated or large, is given up.
func TestEndlessHeaderLists(t *testing.T) {
	for name, fields := range map[string][]string{
		"small fields": {"n", "v"},
		"large fields": {"n", strings.Repeat("v", 8<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{}, false)
			checkGrowth(t, 16, func() {
				p := dialPeer(t, o.address)
				p.write(func() error {
					return p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block(headersOf(servicePath)...)})
				})
				sent := 0
				for sent < 10_000 && p.write(func() error { return p.WriteContinuation(1, false, p.block(fields...)) }) {
					sent++
				}
				t.Logf("%d parts were sent", sent)
				_ = p.conn.(io.Closer).Close()
				o.isAlive(t)
			})
			eventually(t, "the server forgets the connection", func() bool {
				return o.value(t, "promptassembly_connections") <= 1
			})
			o.isEmpty(t)
		})
	}
}

// Streams that are opened and reset at once are begun and end, and hold nothing.
func TestRapidReset(t *testing.T) {
	o := observe(t, server.Config{}, false)
	noGoroutineStays(t, func() {
		checkGrowth(t, 64, func() {
			p := dialPeer(t, o.address)
			for range 10_000 {
				stream := p.open(false, headersOf(servicePath+"SelectMemory")...)
				p.write(func() error { return p.WriteRSTStream(stream, http2.ErrCodeCancel) })
			}
			a := p.wait(p.request("ListTokenizers", nil))
			if a.code() != codes.OK && a.code() != codes.ResourceExhausted && !p.isEnded() {
				t.Errorf("a call that is left alone: %+v", a)
			}
			o.isAlive(t)
			p.close()
		})
		o.isEmpty(t)
	})
}

// Frames that the server has to answer are answered no faster than they are read, and pings are too many
// before long.
func TestFloodsOfFrames(t *testing.T) {
	for name, frame := range map[string]func(p *peer) error{
		"SETTINGS": func(p *peer) error { return p.WriteSettings() },
		"PING":     func(p *peer) error { return p.WritePing(false, [8]byte{1}) },
		"RST_STREAM of no stream": func(p *peer) error {
			return p.WriteRSTStream(1, http2.ErrCodeCancel)
		},
		"empty DATA of no stream": func(p *peer) error { return p.WriteData(1, false, nil) },
		"PRIORITY":                func(p *peer) error { return p.WritePriority(1, http2.PriorityParam{Weight: 1}) },
		"an unknown kind":         func(p *peer) error { return p.WriteRawFrame(0xfa, 0, 0, make([]byte, 1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{}, false)
			checkGrowth(t, 32, func() {
				p := dialPeer(t, o.address)
				p.reading.Lock() // whoever floods does not read
				_ = p.conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
				sent := 0
				for sent < 50_000 && p.write(func() error { return frame(p) }) {
					sent++
				}
				t.Logf("%d frames were sent", sent)
				o.isAlive(t)
				p.reading.Unlock()
				if name == "PING" {
					if codes := p.waitForEnd(); len(codes) != 1 || codes[0] != http2.ErrCodeEnhanceYourCalm {
						t.Logf("GOAWAY %v", codes) // it may be lost with the connection
					}
				}
			})
		})
	}
}

// Who does not speak HTTP/2 is disconnected, and gets no answer beyond the server's own greeting.
func TestOtherProtocols(t *testing.T) {
	random := make([]byte, 4096)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	preface := []byte(http2.ClientPreface)
	greeting := slices.Concat(preface, frameHeader(0, http2.FrameSettings, 0, 0))
	for name, sent := range map[string][]byte{
		"HTTP/1.1":                []byte("GET /metrics HTTP/1.1\r\nHost: test\r\nUpgrade: h2c\r\n\r\n"),
		"random bytes":            random,
		"a preface and no frame":  slices.Concat(preface, random),
		"no SETTINGS first":       slices.Concat(preface, frameHeader(0, http2.FrameData, 0, 1)),
		"a frame of 16 MiB":       slices.Concat(greeting, frameHeader(1<<24-1, http2.FrameData, 0, 1)),
		"a stream of even number": append(slices.Clone(greeting), 0, 0, 1, 1, 4, 0, 0, 0, 2, 0x82),
		"DATA of stream 0":        slices.Concat(greeting, frameHeader(0, http2.FrameData, 0, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			noGoroutineStays(t, func() {
				o := observe(t, server.Config{}, false)
				checkGrowth(t, 8, func() {
					conn := dialTCP(t, o.address)
					if _, err := conn.Write(sent); err != nil {
						t.Fatal(err)
					}
					_ = readToEnd(t, conn)
					o.isAlive(t)
				})
				o.isEmpty(t)
				o.Stop()
			})
		})
	}
}

func TestTLSToThePlainPort(t *testing.T) {
	noGoroutineStays(t, func() {
		o := observe(t, server.Config{}, false)
		conn := tls.Client(dialTCP(t, o.address), &tls.Config{ServerName: "test", MinVersion: tls.VersionTLS12})
		if err := conn.HandshakeContext(t.Context()); err == nil {
			t.Error("the server shook hands")
		}
		o.isAlive(t)
		o.Stop()
	})
}

// What names no method of the server is unimplemented, or malformed.
func TestMethodsThatThereAreNot(t *testing.T) {
	o := observe(t, server.Config{}, true)
	p := dialPeer(t, o.address)
	for i, path := range []string{
		servicePath + "Other", "/other.Service/SelectMemory", "/promptassembly.v1.PromptAssemblyService/", "//", "/a/b/c",
		"", "/", "SelectMemory", "promptassembly.v1.PromptAssemblyService/SelectMemory", "/SelectMemory",
	} {
		if a := p.wait(p.open(true, headersOf(path)...)); a.code() != codes.Unimplemented {
			t.Errorf("%q: %+v, want UNIMPLEMENTED", path, a)
		}
		want := float64(min(i+1, 5)) // the rest is no method's name and no call
		series := "grpc_server_handled_total Unimplemented unknown unknown unknown"
		eventually(t, path+" is counted as "+strconv.Itoa(int(want)), func() bool { return o.value(t, series) == want })
	}
	o.isEmpty(t)
	o.isAlive(t)
}
