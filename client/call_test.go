package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
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
	broken := true
	f, address := fakeServer(t, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
		if broken {
			return unavailable(ctx, nth)
		}
		return good("now"), nil
	})
	c := dial(t, []string{address}, noPause())
	for range 200 {
		_, _ = list(t.Context(), c)
	}
	broken = false
	for range 500 {
		if _, err := list(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	broken = true
	before := len(f.calls)
	for range 100 {
		_, _ = list(t.Context(), c)
	}
	if repeats := len(f.calls) - before - 100; repeats < 100 {
		t.Errorf("%d repeats after 500 answers, want 100 at least", repeats)
	}
}

// An attempt that is not answered gives way to the next, whose time is twice as long, and the last
// has what is left.
func TestSlowAttempts(t *testing.T) {
	var limits []time.Duration
	_, address := fakeServer(t, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
		deadline, _ := ctx.Deadline()
		limits = append(limits, time.Until(deadline))
		if nth < 4 {
			return never(ctx, nth)
		}
		return good("fourth"), nil
	})
	answer, err := list(t.Context(), dial(t, []string{address}, noPause(), client.WithAttempts(4), client.WithAttemptTimeout(200*time.Millisecond)))
	if err != nil || answer.GetUnicodeVersion() != "fourth" {
		t.Fatalf("got %v, %v", answer, err)
	}
	for i, most := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 30 * time.Second} {
		if limits[i] > most || limits[i] < most/2 {
			t.Errorf("attempt %d has %s, want just under %s", i+1, limits[i], most)
		}
	}
}

// Neither the deadline of the caller nor that of the client is passed, whatever is waited for.
func TestDeadlines(t *testing.T) {
	_, silent := fakeServer(t, never)
	_, broken := fakeServer(t, unavailable)
	nobody := listen(t)
	_ = nobody.Close()
	for name, test := range map[string]struct {
		address string
		code    codes.Code
	}{
		"no answer": {silent, codes.DeadlineExceeded},
		"no server": {nobody.Addr().String(), codes.DeadlineExceeded},
		"faults":    {broken, codes.Unavailable}, // the next attempt would come too late
	} {
		t.Run(name, func(t *testing.T) {
			check := func(t *testing.T, ctx context.Context, opts ...client.Option) {
				t.Helper()
				start := time.Now()
				_, err := list(ctx, dial(t, []string{test.address}, append(opts, client.WithAttempts(1000))...))
				failedWith(t, err, test.code)
				if test.code == codes.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v is no context.DeadlineExceeded", err)
				}
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
			}
			check(t, t.Context(), client.WithTimeout(300*time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			check(t, ctx)
		})
	}
}

func TestCancelled(t *testing.T) {
	for name, pause := range map[string]bool{"during an attempt": false, "between attempts": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			f, address := fakeServer(t, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
				if pause {
					return unavailable(ctx, nth)
				}
				cancel()
				return never(ctx, nth)
			})
			_, err := list(ctx, dial(t, []string{address}, client.WithSleep(func(context.Context, time.Duration) { cancel() })))
			failedWith(t, err, codes.Canceled)
			if !errors.Is(err, context.Canceled) || len(f.calls) != 1 {
				t.Errorf("after %d calls: %v", len(f.calls), err)
			}
		})
	}
}

// A client that is closed answers at once.
func TestClosed(t *testing.T) {
	_, address := realServer(t)
	c := dial(t, []string{address})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := list(t.Context(), c)
	failedWith(t, err, codes.Canceled)
	if errors.Is(err, context.Canceled) {
		t.Error("the caller did not cancel anything")
	}
}

// Calls wait for a server that is not there yet, and do not use up attempts.
func TestWaitsForAServer(t *testing.T) {
	listener := listen(t)
	address := listener.Addr().String()
	_ = listener.Close()
	c := dial(t, []string{address}, client.WithAttempts(2), client.WithAttemptTimeout(50*time.Millisecond))
	type result struct {
		answer *pb.ListTokenizersResponse
		err    error
	}
	done := make(chan result)
	go func() {
		answer, err := list(t.Context(), c)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		t.Fatalf("it did not wait: %v", r.err)
	case <-time.After(time.Second):
	}
	late, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skip("another process has the port:", err)
	}
	serveFake(t, late, func(context.Context, int) (*pb.ListTokenizersResponse, error) { return good("late"), nil })
	if r := <-done; r.err != nil || r.answer.GetUnicodeVersion() != "late" {
		t.Errorf("got %v, %v", r.answer, r.err)
	}
}

func TestFailFast(t *testing.T) {
	listener := listen(t)
	_ = listener.Close()
	_, err := list(t.Context(), dial(t, []string{listener.Addr().String()}, client.WithFailFast(), noPause()))
	if failed := failedWith(t, err, codes.Unavailable); failed.Attempts != 5 {
		t.Errorf("%d attempts, want 5", failed.Attempts)
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
