package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

func unavailable(context.Context, int) (*pb.ListTokenizersResponse, error) {
	return nil, failure(codes.Unavailable, "the fault of the day")
}

// never answers until the caller is gone.
func never(ctx context.Context, _ int) (*pb.ListTokenizersResponse, error) {
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

// failedWith returns the *Error that err is.
func failedWith(t *testing.T, err error, code codes.Code) *client.Error {
	t.Helper()
	failed, ok := errors.AsType[*client.Error](err)
	if !ok || failed.Code != code || status.Code(err) != code {
		t.Fatalf("got %v, want %v", err, code)
	}
	return failed
}

func TestAttempts(t *testing.T) {
	for attempts, want := range map[int]int{1: 1, 3: 3, 0: 5, -1: 5} {
		f, address := fakeServer(t, unavailable)
		_, err := list(t.Context(), dial(t, []string{address}, client.WithAttempts(attempts), noPause()))
		failed := failedWith(t, err, codes.Unavailable)
		if failed.Attempts != want || len(f.calls) != want || !strings.Contains(err.Error(), "the fault of the day") {
			t.Errorf("WithAttempts(%d): %d calls, %d counted, %v; want %d", attempts, len(f.calls), failed.Attempts, err, want)
		}
	}
}

// 500 repeats are in store; once they are used up, calls are made once. What comes back in the
// second or so that this takes, 10 a second, is little.
func TestBudget(t *testing.T) {
	const calls = 300
	f, address := fakeServer(t, unavailable)
	c := dial(t, []string{address}, noPause())
	start := time.Now()
	for range calls {
		_, _ = list(t.Context(), c)
	}
	repeats := len(f.calls) - calls
	if refilled := int(10*time.Since(start).Seconds()) + 1; repeats < 500 || repeats > 500+refilled {
		t.Errorf("%d repeats, want 500 and at most %d more", repeats, refilled)
	}
}

// Every five answers put a repeat back.
func TestAnswersRefillTheBudget(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	f, address := fakeServer(t, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
		if broken.Load() {
			return unavailable(ctx, nth)
		}
		return good("now"), nil
	})
	c := dial(t, []string{address}, noPause())
	for range 200 {
		_, _ = list(t.Context(), c)
	}
	broken.Store(false)
	for range 500 {
		if _, err := list(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	broken.Store(true)
	before := len(f.calls)
	for range 100 {
		_, _ = list(t.Context(), c)
	}
	if repeats := len(f.calls) - before - 100; repeats < 100 {
		t.Errorf("%d repeats after 500 answers, want 100 at least", repeats)
	}
}

func TestMessageSizes(t *testing.T) {
	_, address := realServer(t)
	req := wholeRequest(60, 200_000) // 12 MB
	answer, err := dial(t, []string{address}).SelectMemory(t.Context(), req)
	if n := len(answer.GetPlan().GetContext()); err != nil || n < 12_000_000 {
		t.Fatalf("a context of %d bytes, %v", n, err)
	}
	for name, option := range map[string]client.Option{
		"request": client.WithMaxSend(10 << 20), "answer": client.WithMaxReceive(10 << 20),
	} {
		_, err = dial(t, []string{address}, option).SelectMemory(t.Context(), req)
		if failed := failedWith(t, err, codes.ResourceExhausted); failed.Attempts != 1 {
			t.Errorf("the %s is too large, and is tried %d times", name, failed.Attempts)
		}
	}
}

// Over a connection that the caller made calls are repeated, too, and it stays open.
func TestNew(t *testing.T) {
	listener := bufconn.Listen(1 << 20)
	serveFake(t, listener, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
		if nth%2 == 1 {
			return unavailable(ctx, nth)
		}
		return good("in memory"), nil
	})
	conn, err := grpc.NewClient("passthrough:///in-memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 2 {
		c := client.New(conn, noPause())
		if answer, err := list(t.Context(), c); err != nil || answer.GetUnicodeVersion() != "in memory" {
			t.Errorf("got %v, %v", answer, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What the real server says of a bug of its own is not repeated: another attempt would meet it again.
func TestServerBug(t *testing.T) {
	listener := listen(t)
	s := server.New(server.Config{
		Logger: slog.New(slog.DiscardHandler),
		Interceptors: []grpc.UnaryServerInterceptor{
			func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) { panic("a bug") },
		},
	})
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	_, err := list(t.Context(), dial(t, []string{listener.Addr().String()}))
	if got := failedWith(t, err, codes.Internal); got.Attempts != 1 {
		t.Errorf("%d attempts, want 1", got.Attempts)
	}
}

// A server that has no room is asked again for as long as the call may take.
func TestOverloadedForLong(t *testing.T) {
	f, address := fakeServer(t, func(_ context.Context, nth int) (*pb.ListTokenizersResponse, error) {
		if nth <= 700 { // more than the attempts, and than the budget
			return nil, failure(codes.ResourceExhausted, "x", reason("OVERLOADED"))
		}
		return good("at last"), nil
	})
	answer, err := list(t.Context(), dial(t, []string{address}, noPause()))
	if err != nil || answer.GetUnicodeVersion() != "at last" {
		t.Errorf("after %d calls: %v, %v", len(f.calls), answer, err)
	}
	_, address = fakeServer(t, func(context.Context, int) (*pb.ListTokenizersResponse, error) {
		return nil, failure(codes.ResourceExhausted, "x", reason("OVERLOADED"))
	})
	_, err = list(t.Context(), dial(t, []string{address}, client.WithTimeout(3*time.Second)))
	if got := failedWith(t, err, codes.ResourceExhausted); got.Attempts < 2 {
		t.Errorf("%d attempts, want several", got.Attempts)
	}
}
