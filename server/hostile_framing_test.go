package server_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// Where a request's body ends too early, or holds too much, the call is refused with gRPC's own status.
func TestBodies(t *testing.T) {
	message := framed(0, marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}))
	for name, test := range map[string]struct {
		body []byte
		code codes.Code
	}{
		"a message":                    {message, codes.OK},
		"nothing":                      {nil, codes.Internal},
		"half a prefix":                {message[:3], codes.Internal},
		"a prefix alone":               {message[:5], codes.Internal},
		"half a message":               {message[:7], codes.Internal},
		"an empty message":             {framed(0, nil), codes.InvalidArgument}, // without a scope
		"two messages":                 {append(message, message...), codes.Internal},
		"a message and half a prefix":  {append(message, 0, 0), codes.Internal},
		"a message marked as gzip":     {framed(1, message[5:]), codes.Internal},
		"a flag that there is not":     {framed(7, message[5:]), codes.Internal},
		"a message shorter than known": {framed(0, message[5:7]), codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, server.Config{}, false)
			p := dialPeer(t, o.address)
			stream := p.open(false, headersOf(servicePath+"SelectMemory")...)
			p.data(stream, true, test.body)
			if a := p.wait(stream); a.code() != test.code {
				t.Errorf("%v, want %v", a.header, test.code)
			}
			o.isEmpty(t)
			o.isAlive(t)
		})
	}
}

// A connection that ends anywhere leaves nothing behind.
func TestConnectionsThatAreCutOff(t *testing.T) {
	message := framed(0, marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}))
	noGoroutineStays(t, func() {
		o := observe(t, server.Config{}, false)
		for name, cut := range map[string]func(p *peer){
			"before a call": func(*peer) {},
			"within HEADERS": func(p *peer) {
				block := p.block(headersOf(servicePath + "SelectMemory")...)
				p.send(append(frameHeader(len(block), http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1), block[:5]...))
			},
			"before CONTINUATION": func(p *peer) {
				block := p.block(headersOf(servicePath + "SelectMemory")...)
				p.write(func() error { return p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block}) })
			},
			"after HEADERS": func(p *peer) { p.open(false, headersOf(servicePath+"SelectMemory")...) },
			"within the prefix": func(p *peer) {
				p.data(p.open(false, headersOf(servicePath+"SelectMemory")...), false, message[:4])
			},
			"within a message": func(p *peer) {
				p.data(p.open(false, headersOf(servicePath+"SelectMemory")...), false, message[:7])
			},
			"within DATA": func(p *peer) {
				stream := p.open(false, headersOf(servicePath+"SelectMemory")...)
				p.send(append(frameHeader(len(message), http2.FrameData, 0, stream), message[:6]...))
			},
			"before the answer": func(p *peer) { p.request("SelectMemory", message[5:]) },
		} {
			p := dialPeer(t, o.address)
			cut(p)
			p.close()
			eventually(t, name+", the server forgets the connection", func() bool {
				return o.value(t, "promptassembly_connections") == 0
			})
			o.isEmpty(t)
		}
		o.isAlive(t)
		o.Stop()
	})
}

// frameHeader encodes what a frame begins with.
func frameHeader(length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	return []byte{
		byte(length >> 16), byte(length >> 8), byte(length), byte(kind), byte(flags),
		byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream),
	}
}

// Invalid UTF-8 is no text, in whichever string it is.
func TestInvalidUTF8(t *testing.T) {
	o := observe(t, server.Config{}, false)
	conn := dial(t, o.address)
	for method, m := range map[string]proto.Message{
		"SelectMemory": new(pb.SelectMemoryRequest), "PlanPrompt": new(pb.PlanPromptRequest),
	} {
		eachText(m.ProtoReflect(), func(name string, set func(text string)) {
			set("#") // a valid text of the same length
			request := marshal(t, m)
			if at := bytes.IndexByte(request, '#'); at < 0 || bytes.Count(request, []byte("#")) > 1 {
				t.Fatalf("%s is not in %x", name, request)
			}
			for _, bad := range []byte{0x80, 0xC0, 0xFF} {
				_, err := callBytes(t, conn, method, bytes.ReplaceAll(request, []byte("#"), []byte{bad}))
				info, violations := refusalOf(err)
				checkCode(t, err, codes.InvalidArgument)
				if info.GetReason() != "INVALID_REQUEST" || len(info.GetMetadata()) > 0 || len(violations) > 0 {
					t.Errorf("%s: %v %v, want INVALID_REQUEST alone", name, info, violations)
				}
			}
		})
	}
	o.isEmpty(t)
}

// eachText calls f for every field below m that holds text, keys and values of maps included, with a
// function that makes m a message that holds one text, in that field. Nested messages are created
// once each.
func eachText(m protoreflect.Message, f func(name string, set func(text string))) {
	eachTextBelow(m, func() protoreflect.Message { protoReset(m); return m }, nil, f)
}

func protoReset(m protoreflect.Message) { proto.Reset(m.Interface()) }

// eachTextBelow is eachText for the message that at makes within an empty root.
func eachTextBelow(
	of protoreflect.Message, at func() protoreflect.Message, names []string, f func(name string, set func(text string)),
) {
	fields := of.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		names := append(names[:len(names):len(names)], string(field.Name()))
		name := strings.Join(names, ".")
		switch {
		case field.IsMap():
			f(name+" key", func(text string) {
				entries := at().Mutable(field).Map()
				entries.Set(protoreflect.ValueOfString(text).MapKey(), entries.NewValue())
			})
			if field.MapValue().Kind() == protoreflect.StringKind {
				f(name+" value", func(text string) {
					at().Mutable(field).Map().Set(protoreflect.ValueOfString("k").MapKey(), protoreflect.ValueOfString(text))
				})
			}
		case field.Kind() == protoreflect.StringKind && field.IsList():
			f(name, func(text string) { at().Mutable(field).List().Append(protoreflect.ValueOfString(text)) })
		case field.Kind() == protoreflect.StringKind:
			f(name, func(text string) { at().Set(field, protoreflect.ValueOfString(text)) })
		case field.Name() == "grant": // is no text, and may hold a whole request: see TestCanaryInAGrant
		case field.Kind() == protoreflect.BytesKind:
			panic(name + " holds bytes, which this does not set")
		case field.Message() != nil && field.IsList():
			below := of.NewField(field).List().NewElement().Message()
			eachTextBelow(below, func() protoreflect.Message {
				return at().Mutable(field).List().AppendMutable().Message()
			}, names, f)
		case field.Message() != nil:
			below := of.NewField(field).Message()
			eachTextBelow(below, func() protoreflect.Message { return at().Mutable(field).Message() }, names, f)
		}
	}
}
