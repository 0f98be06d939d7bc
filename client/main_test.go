package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// serverVariable makes this binary a server; see startProcess.
const serverVariable = "PROMPTASSEMBLY_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		serveUntilKilled()
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func serveUntilKilled() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	fmt.Println(listener.Addr())
	_ = server.New(server.Config{Logger: slog.New(slog.DiscardHandler)}).Serve(listener)
}

// listen returns a listener on a free port for the length of the test.
func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// realServer runs the service for the length of the test.
func realServer(t testing.TB) (*server.Server, string) {
	t.Helper()
	listener := listen(t)
	s := server.New(server.Config{Logger: slog.New(slog.DiscardHandler)})
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return s, listener.Addr().String()
}

// fake answers every method as a test wants it. nth counts the calls from 1.
type fake struct {
	pb.UnimplementedPromptAssemblyServiceServer
	calls  chan struct{}
	answer func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error)
}

func (f *fake) ListTokenizers(ctx context.Context, _ *pb.ListTokenizersRequest) (*pb.ListTokenizersResponse, error) {
	f.calls <- struct{}{}
	return f.answer(ctx, len(f.calls))
}

// fakeServer runs a server whose ListTokenizers is answer, for the length of the test.
func fakeServer(t testing.TB, answer func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error)) (*fake, string) {
	t.Helper()
	listener := listen(t)
	return serveFake(t, listener, answer), listener.Addr().String()
}

func serveFake(
	t testing.TB, listener net.Listener, answer func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error),
	opts ...grpc.ServerOption,
) *fake {
	f := &fake{calls: make(chan struct{}, 10_000), answer: answer}
	s := grpc.NewServer(opts...)
	pb.RegisterPromptAssemblyServiceServer(s, f)
	healthy := health.NewServer()
	healthy.SetServingStatus(pb.PromptAssemblyService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, healthy)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return f
}

// good is an answer that tells who gave it.
func good(name string) *pb.ListTokenizersResponse {
	return &pb.ListTokenizersResponse{UnicodeVersion: name}
}

// dial returns a client for the length of the test.
func dial(t testing.TB, addresses []string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.DialAll(addresses, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// noPause makes attempts follow each other at once.
func noPause() client.Option { return client.WithSleep(func(context.Context, time.Duration) {}) }

// list makes the smallest call there is.
func list(ctx context.Context, c *client.Client) (*pb.ListTokenizersResponse, error) {
	return c.ListTokenizers(ctx, &pb.ListTokenizersRequest{})
}

// memories returns n memories of size bytes each.
func memories(n, size int) []client.Memory {
	text := strings.Repeat("text ", size/5+1)[:size]
	list := make([]client.Memory, n)
	for i := range list {
		list[i] = client.Memory{
			ID: fmt.Sprintf("m%d", i), Text: fmt.Sprintf("%d %s", i, text), Score: 0.9, SourceID: "s", SourceType: "t",
		}
	}
	return list
}

// wholeRequest selects all of its memories, so that the answer is as large as the request.
func wholeRequest(n, size int) *pb.SelectMemoryRequest {
	req := client.SelectRequest("u", memories(n, size))
	req.Policy = &pb.MemorySelectionPolicy{
		TopK: new(uint32(n)), MaxChars: client.Unlimited(), MaxTokens: client.Unlimited(),
	}
	return req
}
