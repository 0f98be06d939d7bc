package server_test

import (
	"maps"
	"strconv"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

// answer is what was received of a stream.
type answer struct {
	header map[string]string // and trailer
	bytes  int               // of data
	reset  http2.ErrCode
	ended  bool
}

// noCode stands for the status of an answer that has none.
const noCode = codes.Code(99)

// code returns the gRPC status code.
func (a answer) code() codes.Code {
	n, err := strconv.Atoi(a.header["grpc-status"])
	if err != nil {
		return noCode
	}
	return codes.Code(n)
}

// wait returns the answer of a stream when it is complete, or the connection has ended.
func (p *peer) wait(stream uint32) answer {
	p.t.Helper()
	var a answer
	eventually(p.t, "the stream or its connection has ended", func() bool {
		a = p.answer(stream)
		return a.ended || p.isEnded()
	})
	return a
}

// answer returns what there is of an answer.
func (p *peer) answer(stream uint32) answer {
	p.reading.Lock()
	defer p.reading.Unlock()
	a := p.answers[stream]
	if a == nil {
		return answer{}
	}
	is := *a
	is.header = maps.Clone(a.header)
	return is
}

// counted returns how many answers have ended with each status.
func (p *peer) counted() map[codes.Code]int {
	p.reading.Lock()
	defer p.reading.Unlock()
	n := make(map[codes.Code]int)
	for _, a := range p.answers {
		if a.ended {
			n[a.code()]++
		}
	}
	return n
}

func (p *peer) isEnded() bool {
	p.reading.Lock()
	defer p.reading.Unlock()
	return p.ended
}

// waitForEnd waits until the server has ended the connection, and returns the codes of its GOAWAYs.
func (p *peer) waitForEnd() []http2.ErrCode {
	p.t.Helper()
	eventually(p.t, "the server has closed the connection", p.isEnded)
	p.reading.Lock()
	defer p.reading.Unlock()
	return p.goAway
}

// close ends the connection, and waits until it is read to its end.
func (p *peer) close() {
	p.t.Helper()
	_ = p.conn.Close()
	eventually(p.t, "the connection has ended", p.isEnded)
}

func (p *peer) read() {
	for {
		frame, err := p.ReadFrame()
		p.reading.Lock()
		if err != nil {
			p.ended = true
		} else {
			p.note(frame)
		}
		p.changed.Broadcast()
		p.reading.Unlock()
		if err != nil {
			return
		}
		if ping, ok := frame.(*http2.PingFrame); ok && !ping.IsAck() {
			p.write(func() error { return p.WritePing(true, ping.Data) })
		}
	}
}

// note notes a frame that was received.
func (p *peer) note(frame http2.Frame) {
	stream := frame.Header().StreamID
	if stream != 0 && p.answers[stream] == nil {
		p.answers[stream] = &answer{header: make(map[string]string)}
	}
	a := p.answers[stream]
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		_ = f.ForeachSetting(func(s http2.Setting) error {
			p.settings[s.ID] = s.Val
			return nil
		})
	case *http2.WindowUpdateFrame:
		if stream == 0 {
			p.window += int(f.Increment)
		} else {
			p.granted[stream] += int(f.Increment)
		}
	case *http2.GoAwayFrame:
		p.goAway = append(p.goAway, f.ErrCode)
	case *http2.MetaHeadersFrame:
		for _, field := range f.Fields {
			a.header[field.Name] = field.Value
		}
		a.ended = a.ended || f.StreamEnded()
	case *http2.DataFrame:
		a.bytes += len(f.Data())
		a.ended = a.ended || f.StreamEnded()
	case *http2.RSTStreamFrame:
		if !a.ended {
			a.reset, a.ended = f.ErrCode, true
		}
	}
}
