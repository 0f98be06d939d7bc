package rpc

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/admission"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// canary stands for memory text in the value of a panic.
const canary = "canary-7f3a"

// panicking is a token counter with a bug.
type panicking struct{}

var _ tokens.Counter = panicking{}

func (panicking) Name() string     { return "panicking" }
func (panicking) Version() string  { return "1" }
func (panicking) Source() string   { return "a test" }
func (panicking) Exact() bool      { return false }
func (panicking) Additive() bool   { return true }
func (panicking) Count([]byte) int { panic(canary) }

func TestOrderOfTheChain(t *testing.T) {
	var log logged
	unary, stream := New(Config{Log: log.logger(), Access: new(Access)}).chain()
	if len(unary) != 4 || len(stream) != 2 {
		t.Fatalf("%d unary and %d stream interceptors, want 4 and 2", len(unary), len(stream))
	}
	recovers, validates := unary[0], unary[1]

	info := new(grpc.UnaryServerInfo)
	_, err := recovers(t.Context(), new(pb.SelectMemoryRequest), info,
		func(context.Context, any) (any, error) { panic(canary) })
	checkInternal(t, err, &log)

	_, err = validates(t.Context(), new(pb.SelectMemoryRequest), info,
		func(context.Context, any) (any, error) { panic("a handler saw an invalid request") })
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("an invalid request is answered with %v", err)
	}

	trusting, _ := New(Config{Log: log.logger()}).chain()
	gate := admission.NewGate(1<<20, 1)
	room, _ := gate.Open().Admit(1)
	arrived := context.WithValue(t.Context(), arrivalKey{}, &arrival{room: room})
	_, err = trusting[2](arrived, &pb.SelectMemoryRequest{Grant: []byte("g")}, info,
		func(context.Context, any) (any, error) { panic("a handler saw a grant") })
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a grant where nobody's keys are known is answered with %v", err)
	}

	_, err = unary[3](t.Context(), new(pb.Budget), info,
		func(context.Context, any) (any, error) { panic("a handler saw a request that nobody has authorized") })
	if status.Code(err) != codes.Internal {
		t.Errorf("a request that authorization does not know is answered with %v", err)
	}

	err = stream[0](nil, streamOf{ctx: t.Context()}, new(grpc.StreamServerInfo), func(any, grpc.ServerStream) error { panic(canary) })
	checkInternal(t, err, &log)
}

// streamOf is a stream that carries nothing but its context.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s streamOf) Context() context.Context { return s.ctx }

// A panic reaches the caller as a fixed message, and the server goes on.
func TestPanics(t *testing.T) {
	var log logged
	client := connect(t, &log)
	good := func() {
		t.Helper()
		if _, err := client.SelectMemory(t.Context(), selectFrom(&pb.Provenance{SourceId: "s", SourceType: "t"})); err != nil {
			t.Errorf("after a panic: %v", err)
		}
	}

	bad := selectFrom(&pb.Provenance{SourceId: "s", SourceType: "t"})
	bad.Tokenizer = panicking{}.Name()
	_, err := client.SelectMemory(t.Context(), bad)
	checkInternal(t, err, &log)
	good()

	_, err = client.PlanPrompt(t.Context(), &pb.PlanPromptRequest{Memory: bad})
	checkInternal(t, err, &log)
	good()

	_, err = client.ListTokenizers(t.Context(), new(pb.ListTokenizersRequest)) // before the interceptors
	checkInternal(t, err, &log)
	good()

	bad.UserScope = "" // validated before anything is counted
	if _, err = client.SelectMemory(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an invalid request is answered with %v", err)
	}
}

// checkInternal checks what the caller got, and that the log tells of a panic since the last check.
func checkInternal(t *testing.T, err error, log *logged) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.Internal || s.Message() != "internal error" || len(s.Details()) > 0 {
		t.Errorf("the caller got %v, want an internal error and nothing more", s.Proto())
	}
	text := log.take()
	if !strings.Contains(text, "chain_test.go") {
		t.Errorf("the log does not say where the panic was:\n%s", text)
	}
	if strings.Contains(text, canary) {
		t.Errorf("the log holds the panic's value:\n%s", text)
	}
}

// connect serves the service in memory with a token counter that panics, and with ListTokenizers
// panicking before its interceptors.
func connect(t *testing.T, log *logged) pb.PromptAssemblyServiceClient {
	t.Helper()
	service := testService(log.logger(), tokens.Estimate{}, panicking{})
	desc := service.describe()
	for i := range desc.Methods {
		if desc.Methods[i].MethodName == "ListTokenizers" {
			desc.Methods[i].Handler = service.wrap(func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
				panic(canary)
			})
		}
	}
	s := grpc.NewServer(service.Options()...)
	s.RegisterService(desc, service)
	listener := bufconn.Listen(1 << 16)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)

	conn, err := grpc.NewClient("passthrough:///in-memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewPromptAssemblyServiceClient(conn)
}

// testService returns a service with room for any test.
func testService(log *slog.Logger, counters ...tokens.Counter) *Service {
	return New(Config{
		Log: log, Counters: tokens.NewSet(counters...), MessageBytes: MaxMessageBytes, CallTimeout: time.Minute,
		UnreadTimeout: time.Minute,
		Gates:         Gates{admission.NewGate(1<<30, 1), admission.NewGate(1<<30, 1), admission.NewGate(1<<30, 1)},
	})
}

// logged gathers a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// take returns what was logged since it was called last.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}
