package client_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// An attempt that is not answered gives way to the next, whose time is twice as long, and the last
// has what is left.
func TestSlowAttempts(t *testing.T) {
	limits := make(chan time.Duration, 4)
	_, address := fakeServer(t, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
		deadline, _ := ctx.Deadline()
		limits <- time.Until(deadline)
		if nth < 4 {
			return never(ctx, nth)
		}
		return good("fourth"), nil
	})
	c := dial(t, []string{address}, noPause(), client.WithAttempts(4), client.WithAttemptTimeout(200*time.Millisecond))
	answer, err := list(t.Context(), c)
	if err != nil || answer.GetUnicodeVersion() != "fourth" {
		t.Fatalf("got %v, %v", answer, err)
	}
	for i, most := range []time.Duration{
		200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 30 * time.Second,
	} {
		if limit := <-limits; limit > most || limit < most/2 {
			t.Errorf("attempt %d has %s, want just under %s", i+1, limit, most)
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
				_ = failedWith(t, err, test.code)
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
			_ = failedWith(t, err, codes.Canceled)
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
	_ = failedWith(t, err, codes.Canceled)
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
