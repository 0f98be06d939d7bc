package server_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/promptassembly/promptassembly/server"
)

// hostileCounting returns a configuration that counts the handlers that run.
func hostileCounting(handlers *atomic.Int64) server.Config {
	return server.Config{Interceptors: []grpc.UnaryServerInterceptor{
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			handlers.Add(1)
			return handler(ctx, req)
		},
	}}
}

// hostilePaths are what may be taken for a method by something on the way, and is none.
var hostilePaths = []string{
	"", "/", "//", "///", "*", "?", "/*", "/.", "/..",
	"promptassembly.v1.PromptAssemblyService/SelectMemory",
	"/" + servicePath + "SelectMemory",
	"//promptassembly.v1.PromptAssemblyService//SelectMemory",
	servicePath + "/SelectMemory", servicePath + "SelectMemory/", servicePath + "./SelectMemory",
	servicePath + "../PromptAssemblyService/SelectMemory", "/." + servicePath + "SelectMemory",
	"http://test" + servicePath + "SelectMemory", "https://test" + servicePath + "SelectMemory", "test" + servicePath + "SelectMemory",
	"\\promptassembly.v1.PromptAssemblyService\\SelectMemory",
	servicePath + "selectMemory", servicePath + "SELECTMEMORY", servicePath + "Selectmemory",
	strings.ToLower(servicePath) + "SelectMemory", strings.ToUpper(servicePath) + "SelectMemory",
	servicePath + "SelectMemory ", " " + servicePath + "SelectMemory", servicePath + "SelectMemory?x=1", servicePath + "SelectMemory#x",
	servicePath + "SelectMemory;x", servicePath + "Select%4Demory", servicePath + "SelectMemory%00", "/promptassembly%2Ev1.PromptAssemblyService/SelectMemory",
	servicePath + "SelectMemory\u200b", servicePath + "\u0405electMemory", // a Cyrillic letter
	"/.promptassembly.v1.PromptAssemblyService/SelectMemory", "/promptassembly.v1.PromptAssemblyService./SelectMemory",
	"/promptassembly.v1/PromptAssemblyService/SelectMemory", "/PromptAssemblyService/SelectMemory",
	"grpc.health.v1.Health/Check", "//grpc.health.v1.Health/Check", "/grpc.health.v1.Health//Check", "/grpc.health.v1.Health/check",
	"/GRPC.HEALTH.V1.HEALTH/Check", "/grpc.health.v1.health/Check", "/grpc.health.v1.Health/", "/grpc.health.v1.Health",
	"grpc.health.v1.Health/Watch", "//grpc.health.v1.Health/Watch", "/grpc.health.v1.Health/watch",
	"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "//grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	"/grpc.reflection.v1.serverReflection/ServerReflectionInfo", "/grpc.reflection.v1.ServerReflection/serverReflectionInfo",
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo/",
}

// What is no method's path is never answered as one, with an identity or without.
func TestHostilePaths(t *testing.T) {
	var handlers atomic.Int64
	f := hostileServe(t, false, hostileCounting(&handlers))
	p := f.peer(t, nil)
	for _, path := range hostilePaths {
		t.Run(path, func(t *testing.T) {
			stream := p.open(false, headersOf(path)...)
			p.data(stream, true, framed(0, hostileClaim(t)))
			a := p.wait(stream)
			if code := a.code(); code != codes.Unimplemented && (code != codes.Unauthenticated || hostileReason(a) != "IDENTITY_MISSING") || a.bytes > 0 {
				t.Errorf("without an identity: %+v", a)
			}
			stream = p.open(false, headersOf(path, hostileBearers(f.idp.token(nil))...)...)
			p.data(stream, true, framed(0, hostileClaim(t)))
			if a := p.wait(stream); a.code() != codes.Unimplemented || a.bytes > 0 {
				t.Errorf("with an identity: %+v", a)
			}
		})
	}
	if n := handlers.Load(); n > 0 {
		t.Errorf("%d handlers ran", n)
	}
	f.isEmpty(t)
}

// Every method that there is asks who calls, and so does every method that there is not.
func TestHostileCallsOfEveryMethod(t *testing.T) {
	var handlers atomic.Int64
	f := hostileServe(t, false, hostileCounting(&handlers))
	paths := []string{servicePath + "NoSuchMethod", "/no.such.Service/Method", "/a/b/c"}
	for _, service := range f.services(t, "Bearer "+f.idp.token(nil)) {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			t.Fatal(err)
		}
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			paths = append(paths, "/"+service+"/"+string(methods.Get(i).Name()))
		}
	}
	if len(paths) < 3+3+3+2 {
		t.Errorf("%q, want the methods of this service, of health and of reflection", paths)
	}
	p := f.peer(t, nil)
	forged := hostileBearers(newHostileIssuer(t, f.idp.claims).token(nil))
	for _, path := range paths {
		for name, headers := range map[string][]string{
			"no identity": nil, "a forged one": forged,
			"gzip": {"grpc-encoding", "gzip"}, "JSON": {"content-type", "application/grpc+json"},
			"a name of another": {"host", "x", "x-user", "harness", "user-agent", "harness", "grpc-tags-bin", "aGFybmVzcw", "from", "harness"},
		} {
			want := "IDENTITY_MISSING"
			if name == "a forged one" {
				want = "IDENTITY_INVALID"
			}
			for _, end := range []bool{true, false} {
				a := p.wait(p.open(end, headersOf(path, headers...)...))
				if a.code() != codes.Unauthenticated || hostileReason(a) != want || a.bytes > 0 {
					t.Errorf("%s with %s: %+v", path, name, a)
				}
			}
		}
	}
	if n := handlers.Load(); n > 0 {
		t.Errorf("%d handlers ran", n)
	}
	f.isEmpty(t)
}

// services returns the names of all services, which the holder of a token may ask for.
func (f *hostileServer) services(t *testing.T, token string) (names []string) {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", token)
	stream, err := reflectionpb.NewServerReflectionClient(dial(t, f.address)).ServerReflectionInfo(ctx)
	if err == nil {
		err = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	}
	if err == nil {
		err = stream.CloseSend()
	}
	var answer *reflectionpb.ServerReflectionResponse
	if err == nil {
		answer, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	return names
}

// What HTTP/2 does not allow in a header list does not become an identity, and not a call.
func TestHostileHeaderLists(t *testing.T) {
	var handlers atomic.Int64
	f := hostileServe(t, false, hostileCounting(&handlers))
	token := "Bearer " + f.idp.token(nil)
	usual := headersOf(servicePath + "SelectMemory")
	begin := func(fields ...string) func(p *peer) uint32 {
		return func(p *peer) uint32 {
			stream := p.open(false, fields...)
			p.data(stream, true, framed(0, hostileClaim(t)))
			return stream
		}
	}
	// more sends headers of a stream that is open.
	more := func(p *peer, stream uint32, end bool, fields ...string) {
		p.write(func() error {
			return p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.block(fields...), EndHeaders: true, EndStream: end})
		})
	}
	lists := map[string]func(p *peer) uint32{
		"an upper-case header":       begin(append(slices.Clone(usual), "Authorization", token)...),
		"an upper-case letter":       begin(append(slices.Clone(usual), "authorizatioN", token)...),
		"white space before":         begin(append(slices.Clone(usual), " authorization", token)...),
		"white space behind":         begin(append(slices.Clone(usual), "authorization ", token)...),
		"a colon":                    begin(append(slices.Clone(usual), ":authorization", token)...),
		"a header in another":        begin(append(slices.Clone(usual), "x", "y\r\nauthorization: "+token)...),
		"NUL in the token":           begin(append(slices.Clone(usual), "authorization", token+"\x00")...),
		"pseudo headers behind":      begin(append([]string{"authorization", token}, usual...)...),
		"one pseudo header behind":   begin(append(slices.Clone(usual), "authorization", token, ":path", servicePath+"SelectMemory")...),
		"two paths":                  begin(append([]string{":path", "/grpc.health.v1.Health/Check"}, append(slices.Clone(usual), "authorization", token)...)...),
		"no path":                    begin(append([]string{":method", "POST", ":scheme", "http", ":authority", "test", "content-type", "application/grpc"}, "authorization", token)...),
		"two authorities":            begin(append([]string{":authority", "harness"}, append(slices.Clone(usual), "authorization", token)...)...),
		"two hosts":                  begin(append(slices.Clone(usual), "host", "a", "host", "b", "authorization", token)...),
		"a connection header":        begin(append(slices.Clone(usual), "connection", "authorization", "authorization", token)...),
		"another content type":       begin(append(replace("content-type", "application/json"), "authorization", token)...),
		"GET":                        begin(append(replace(":method", "GET"), "authorization", token)...),
		"CONNECT":                    begin(append(replace(":method", "CONNECT"), "authorization", token)...),
		"no time":                    begin(append(slices.Clone(usual), "grpc-timeout", "0n", "authorization", token)...),
		"a negative time":            begin(append(slices.Clone(usual), "grpc-timeout", "-1S", "authorization", token)...),
		"a time without a unit":      begin(append(slices.Clone(usual), "grpc-timeout", "1", "authorization", token)...),
		"binary metadata that is no": begin(append(slices.Clone(usual), "x-bin", "%%%", "authorization", token)...),
		"in trailers": func(p *peer) uint32 {
			stream := p.open(false, usual...)
			p.data(stream, false, framed(0, hostileClaim(t)))
			more(p, stream, true, "authorization", token)
			return stream
		},
		"in trailers, before a body": func(p *peer) uint32 {
			stream := p.open(false, usual...)
			more(p, stream, true, "authorization", token)
			return stream
		},
		"in a second HEADERS": func(p *peer) uint32 {
			stream := p.open(false, usual...)
			more(p, stream, false, "authorization", token)
			p.data(stream, true, framed(0, hostileClaim(t)))
			return stream
		},
		"in a second call's HEADERS": func(p *peer) uint32 {
			stream := p.open(false, usual...)
			more(p, stream, false, append(slices.Clone(usual), "authorization", token)...)
			p.data(stream, true, framed(0, hostileClaim(t)))
			return stream
		},
	}
	t.Run("lists", func(t *testing.T) {
		for name, call := range lists {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := f.peer(t, nil)
				stream := call(p)
				a := p.wait(stream)
				switch a.code() {
				case codes.Unauthenticated, codes.Internal, codes.Unimplemented, codes.DeadlineExceeded, noCode:
				default:
					if name != "another content type" || a.header[":status"] != "415" {
						t.Errorf("answered with %+v", a)
					}
				}
			})
		}
	})
	if n := handlers.Load(); n > 0 {
		t.Errorf("%d handlers ran", n)
	}
	f.logged = len(f.lines(t))
	f.isEmpty(t)
	f.answers(t, f.peer(t, nil), "", "authorization", token)
}

// A caller's header list, which its connection compresses, is not the next caller's.
func TestHostileConnectionIsShared(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	p := f.peer(t, nil)
	harness := hostileBearers(f.idp.token(nil))
	agent := hostileBearers(f.other.token(func(h *hostileToken) { h.claims["sub"] = "agent" }))
	body := framed(0, hostileClaim(t))
	for range 10 {
		want := make(map[uint32]string)
		for range 6 { // all are open before any has a body
			for reason, headers := range map[string][]string{"": harness, "AUTHORITY_NOT_PERMITTED": agent, "IDENTITY_MISSING": nil} {
				want[p.open(false, headersOf(servicePath+"SelectMemory", headers...)...)] = reason
			}
		}
		for stream := range want {
			p.data(stream, true, body)
		}
		for stream, reason := range want {
			if a := p.wait(stream); hostileReason(a) != reason || (reason == "") != (a.code() == codes.OK) {
				t.Errorf("answered with %v %s, want %q", a.code(), hostileReason(a), reason)
			}
		}
	}
	f.isEmpty(t)
}
