package server_test

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/promptassembly/promptassembly/server"
)

// What a server says of its limits when a connection begins.
func TestAnnouncedLimits(t *testing.T) {
	for name, test := range map[string]struct {
		limits           server.Limits
		streams, headers uint32
	}{
		"by default": {server.Limits{}, 128, 16 << 10},
		"set":        {server.Limits{Streams: 7, HeaderBytes: 5000}, 7, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{Limits: test.limits}, false)
			p := dialPeer(t, o.address)
			p.wait(p.request("ListTokenizers", nil))
			p.reading.Lock()
			defer p.reading.Unlock()
			if n := p.settings[http2.SettingMaxConcurrentStreams]; n != test.streams {
				t.Errorf("%d streams, want %d", n, test.streams)
			}
			if n := p.settings[http2.SettingMaxHeaderListSize]; n != test.headers {
				t.Errorf("%d bytes of headers, want %d", n, test.headers)
			}
		})
	}
}

// A connection that is not set up in time is closed.
func TestHandshakeTimeout(t *testing.T) {
	for name, sent := range map[string][]byte{
		"silence": nil, "half a preface": []byte(http2.ClientPreface[:10]), "no SETTINGS": []byte(http2.ClientPreface),
	} {
		t.Run(name, func(t *testing.T) {
			noGoroutineStays(t, func() {
				o := observe(t, server.Config{Limits: server.Limits{HandshakeTimeout: 30 * time.Millisecond}}, false)
				conn := dialTCP(t, o.address)
				if _, err := conn.Write(sent); err != nil {
					t.Fatal(err)
				}
				_ = readToEnd(t, conn)
				o.Stop()
			})
		})
	}
}

// An old connection is asked to end, and its calls are cut off when they go on for too long.
func TestConnectionAge(t *testing.T) {
	o := observe(t, server.Config{Limits: server.Limits{
		ConnectionAge: 50 * time.Millisecond, ConnectionAgeGrace: 100 * time.Millisecond,
	}}, false)
	idle, busy := dialPeer(t, o.address), dialPeer(t, o.address)
	busy.open(false, headersOf(servicePath+"SelectMemory")...)
	isError := func(c http2.ErrCode) bool { return c != http2.ErrCodeNo }
	for _, p := range []*peer{idle, busy} {
		if codes := p.waitForEnd(); len(codes) == 0 || slices.ContainsFunc(codes, isError) {
			t.Errorf("GOAWAY %v, want some of NO_ERROR", codes)
		}
	}
	o.isEmpty(t)
	o.hasConnections(t, 0)
}

// A connection without calls is ended.
func TestConnectionIdle(t *testing.T) {
	o := observe(t, server.Config{Limits: server.Limits{ConnectionIdle: 50 * time.Millisecond}}, false)
	p := dialPeer(t, o.address)
	if a := p.wait(p.request("ListTokenizers", nil)); a.code() != codes.OK {
		t.Errorf("%+v, want an answer", a)
	}
	if codes := p.waitForEnd(); !slices.Contains(codes, http2.ErrCodeNo) {
		t.Errorf("GOAWAY %v, want NO_ERROR", codes)
	}
}

// Who asks for a sign of life more often than it may is disconnected.
func TestKeepaliveMinTime(t *testing.T) {
	ping := func(p *peer) { p.write(func() error { return p.WritePing(false, [8]byte{1}) }) }
	o := observe(t, server.Config{Limits: server.Limits{KeepaliveMinTime: time.Hour}}, false)
	p := dialPeer(t, o.address)
	for range 5 {
		ping(p)
	}
	if codes := p.waitForEnd(); !slices.Equal(codes, []http2.ErrCode{http2.ErrCodeEnhanceYourCalm}) {
		t.Errorf("GOAWAY %v, want ENHANCE_YOUR_CALM", codes)
	}
	o = observe(t, server.Config{Limits: server.Limits{KeepaliveMinTime: time.Nanosecond}}, false)
	p = dialPeer(t, o.address)
	for range 50 {
		ping(p)
	}
	if a := p.wait(p.request("ListTokenizers", nil)); a.code() != codes.OK {
		t.Errorf("%+v, want an answer", a)
	}
}

// A client that gives no sign of life is disconnected, though its calls are in flight.
func TestKeepaliveTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	o := hold(t, server.Limits{ // grpc does not ask more often than once a second
		KeepaliveTime: time.Second, KeepaliveTimeout: 50 * time.Millisecond,
	}, false)
	p := dialPeer(t, o.address)
	o.begin(t, p, 1)
	p.reading.Lock() // no answer to the ping
	o.isEmpty(t)
	o.hasConnections(t, 0)
	p.reading.Unlock()
	p.waitForEnd()
}

// Further connections than there may be wait until others end.
func TestLimitOfConnections(t *testing.T) {
	o := observe(t, server.Config{Limits: server.Limits{Connections: 2}}, false)
	first, second := dialPeer(t, o.address), dialPeer(t, o.address)
	for _, p := range []*peer{first, second} {
		if a := p.wait(p.request("ListTokenizers", nil)); a.code() != codes.OK {
			t.Errorf("%+v, want an answer", a)
		}
	}
	third := dialPeer(t, o.address)
	stream := third.request("ListTokenizers", nil)
	time.Sleep(50 * time.Millisecond)
	if a := third.answer(stream); a.ended {
		t.Errorf("%+v, want no answer yet", a)
	}
	o.hasConnections(t, 2)
	first.close()
	if a := third.wait(stream); a.code() != codes.OK {
		t.Errorf("%+v, want an answer", a)
	}
}
