package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

const serviceName = "promptassembly.v1.PromptAssemblyService"

func TestHealth(t *testing.T) {
	client := healthpb.NewHealthClient(start(t))
	for _, name := range []string{"", serviceName} {
		resp, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v, want SERVING", name, resp, err)
		}
	}
	_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "other"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("another service: %v, want NOT_FOUND", err)
	}
}

func TestReflection(t *testing.T) {
	stream, err := reflectionpb.NewServerReflectionClient(start(t)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(request *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}

	services := ask(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}).GetListServicesResponse().GetService()
	if !slices.ContainsFunc(services, func(s *reflectionpb.ServiceResponse) bool { return s.GetName() == serviceName }) {
		t.Errorf("services %v, want %s among them", services, serviceName)
	}

	files := ask(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: "promptassembly.v1.SelectMemoryRequest",
		},
	}).GetFileDescriptorResponse().GetFileDescriptorProto()
	defines := func(encoded []byte) bool {
		file := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(encoded, file); err != nil {
			t.Fatal(err)
		}
		return file.GetPackage() == "promptassembly.v1" &&
			slices.ContainsFunc(file.GetMessageType(), func(m *descriptorpb.DescriptorProto) bool { return m.GetName() == "SelectMemoryRequest" })
	}
	if !slices.ContainsFunc(files, defines) {
		t.Error("no file defines SelectMemoryRequest")
	}
}

// What a client or a proxy may repeat, or send as a GET.
func TestIdempotencyLevels(t *testing.T) {
	want := map[string]descriptorpb.MethodOptions_IdempotencyLevel{
		"SelectMemory":   descriptorpb.MethodOptions_IDEMPOTENT,
		"PlanPrompt":     descriptorpb.MethodOptions_IDEMPOTENT,
		"ListTokenizers": descriptorpb.MethodOptions_NO_SIDE_EFFECTS,
	}
	methods := pb.File_promptassembly_v1_services_proto.Services().ByName("PromptAssemblyService").Methods()
	if methods.Len() != len(want) {
		t.Errorf("%d methods, want %d", methods.Len(), len(want))
	}
	for i := range methods.Len() {
		name := string(methods.Get(i).Name())
		got := methods.Get(i).Options().(*descriptorpb.MethodOptions).GetIdempotencyLevel()
		if level, ok := want[name]; !ok || got != level {
			t.Errorf("%s is %v, want %v", name, got, level)
		}
	}
}

// A call in flight is answered while the server drains; what comes later is refused.
func TestDrain(t *testing.T) {
	s, address := listen(t, io.Discard)
	client := http2Client(t)
	request := framed(0, marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}))
	body, rest := io.Pipe()
	answered := make(chan codes.Code, 1)
	go func() {
		answered <- post(t, client, address, "SelectMemory", body, nil)
	}()
	if _, err := rest.Write(request[:6]); err != nil {
		t.Fatal(err)
	}
	// Its stream is there when the server answers a later one of the same connection.
	if code := post(t, client, address, "ListTokenizers", bytes.NewReader(framed(0, nil)), nil); code != codes.OK {
		t.Fatalf("before the drain: %v", code)
	}

	drained := make(chan struct{})
	go func() {
		s.Drain(t.Context(), 0)
		close(drained)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for refused := false; !refused; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if refused = err != nil; !refused {
			_ = conn.Close()
			time.Sleep(time.Millisecond)
		}
		if ctx.Err() != nil {
			t.Fatal("still listening")
		}
	}
	_, err := pb.NewPromptAssemblyServiceClient(dial(t, address)).ListTokenizers(ctx, new(pb.ListTokenizersRequest))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("while draining: %v, want UNAVAILABLE", err)
	}
	select {
	case <-drained:
		t.Error("drained with a call in flight")
	default:
	}

	if _, err := rest.Write(request[6:]); err != nil {
		t.Fatal(err)
	}
	_ = rest.Close()
	if code := <-answered; code != codes.OK {
		t.Errorf("the call in flight: %v, want OK", code)
	}
	<-drained
}

// A health watch, which by itself lasts for ever, does not hold up the drain.
func TestDrainEndsHealthWatches(t *testing.T) {
	s, address := listen(t, io.Discard)
	watch, err := healthpb.NewHealthClient(dial(t, address)).Watch(t.Context(), new(healthpb.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := watch.Recv(); err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v, want SERVING", resp, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s.Drain(ctx, 0)
	if ctx.Err() != nil {
		t.Error("the drain ended only at its limit")
	}
	for err == nil {
		var resp *healthpb.HealthCheckResponse
		if resp, err = watch.Recv(); err == nil && resp.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("while draining: %v", resp)
		}
	}
}

// What is still open when the context of the drain is done is cut off.
func TestDrainIsBounded(t *testing.T) {
	s, address := listen(t, io.Discard)
	stream, err := reflectionpb.NewServerReflectionClient(dial(t, address)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.Drain(ctx, 0)
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream outlived the drain")
	}
}

// Compressed messages are not accepted: a small one could be a large one.
func TestCompressedRequests(t *testing.T) {
	_, address := listen(t, io.Discard)
	client := http2Client(t)
	compressed := compress(marshal(t, &pb.SelectMemoryRequest{UserScope: "u"}))
	body := func() io.Reader { return bytes.NewReader(framed(1, compressed)) }
	code := post(t, client, address, "SelectMemory", body(), http.Header{"Grpc-Encoding": {"gzip"}})
	if code != codes.Unimplemented {
		t.Errorf("gzip: %v, want UNIMPLEMENTED", code)
	}
	code = post(t, client, address, "SelectMemory", body(), nil)
	if code != codes.Internal {
		t.Errorf("a compressed message without a name of its compression: %v, want gRPC's own INTERNAL", code)
	}
}

func compress(b []byte) []byte {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write(b)
	_ = w.Close()
	return compressed.Bytes()
}
