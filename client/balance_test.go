package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// answering runs a server that answers with its name.
func answering(t *testing.T, name string) (*fake, string) {
	return fakeServer(t, func(context.Context, int) (*pb.ListTokenizersResponse, error) { return good(name), nil })
}

// answers makes calls until each of the names has answered, then 60 more, which must not fail, and
// counts those.
func answers(t *testing.T, c *client.Client, names ...string) map[string]int {
	t.Helper()
	seen := map[string]bool{}
	for deadline := time.Now().Add(20 * time.Second); len(seen) < len(names) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // the servers note a bounded number of calls
		if answer, err := list(t.Context(), c); err == nil {
			seen[answer.GetUnicodeVersion()] = true
		}
	}
	count := map[string]int{}
	for range 60 {
		answer, err := list(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		count[answer.GetUnicodeVersion()]++
	}
	return count
}

func TestCallsTakeTurns(t *testing.T) {
	_, a := answering(t, "a")
	_, b := answering(t, "b")
	_, c := answering(t, "c")
	got := answers(t, dial(t, []string{a, b, c, a}), "a", "b", "c")
	if got["a"] != 20 || got["b"] != 20 || got["c"] != 20 {
		t.Errorf("of 60 calls %v, want 20 each", got)
	}
}

// Each call that one server turns away is answered by the other at the next attempt.
func TestTheNextAttemptGoesElsewhere(t *testing.T) {
	f, bad := fakeServer(t, unavailable)
	_, a := answering(t, "a")
	c := dial(t, []string{bad, a}, client.WithAttempts(2), noPause())
	if got := answers(t, c, "a"); got["a"] != 60 {
		t.Errorf("got %v", got)
	}
	if len(f.calls) < 20 {
		t.Errorf("%d calls went to the server that turns them away: calls do not take turns", len(f.calls))
	}
}

// Only the first calls wait for a server that does not answer; those after them avoid it.
func TestSilentServerIsAvoided(t *testing.T) {
	f, silent := fakeServer(t, never)
	_, a := answering(t, "a")
	c := dial(t, []string{silent, a}, client.WithAttemptTimeout(200*time.Millisecond), noPause())
	for deadline := time.Now().Add(20 * time.Second); len(f.calls) == 0 && time.Now().Before(deadline); {
		if _, err := list(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if got := answers(t, c, "a"); got["a"] != 60 || len(f.calls) != 1 {
		t.Errorf("got %v, and %d calls went to the silent server", got, len(f.calls))
	}
}

// A call that has little time still has some for another server.
func TestSilentServerAndAShortDeadline(t *testing.T) {
	var hangs atomic.Bool
	_, silent := fakeServer(t, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
		if hangs.Load() {
			return never(ctx, nth)
		}
		return good("silent"), nil
	})
	_, a := answering(t, "a")
	c := dial(t, []string{silent, a})
	answers(t, c, "silent", "a")
	hangs.Store(true)
	for range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if answer, err := list(ctx, c); err != nil || answer.GetUnicodeVersion() != "a" {
			t.Errorf("got %v, %v", answer, err)
		}
		cancel()
	}
}

// A server that drains gets no calls from the moment its health says so.
func TestDrainingServer(t *testing.T) {
	_, a := answering(t, "a")
	leaving, b := realServer(t)
	c := dial(t, []string{a, b})
	answers(t, c, "a", server.Version()) // connects to both
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		leaving.Drain(ctx, 2*time.Second)
	}()
	time.Sleep(500 * time.Millisecond)
	if got := answers(t, c, "a"); got["a"] != 60 {
		t.Errorf("got %v, want all from the server that stays", got)
	}
	<-drained
	if got := answers(t, c, "a"); got["a"] != 60 {
		t.Errorf("afterwards: got %v", got)
	}
}

func TestTargets(t *testing.T) {
	_, a := answering(t, "a")
	_, port, _ := net.SplitHostPort(a)
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	serveFake(t, listener, func(context.Context, int) (*pb.ListTokenizersResponse, error) { return good("u"), nil })
	for target, want := range map[string]string{
		a: "a", "localhost:" + port: "a", "dns:///localhost:" + port: "a", "unix:" + socket: "u",
	} {
		c, err := client.Dial(target)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := list(t.Context(), c); err != nil || answer.GetUnicodeVersion() != want {
			t.Errorf("%s: got %v, %v", target, answer, err)
		}
		_ = c.Close()
	}
	if got := answers(t, dial(t, []string{a, "unix:" + socket}), "a", "u"); got["a"] != 30 || got["u"] != 30 {
		t.Errorf("of 60 calls %v, want 30 each", got)
	}
	for _, addresses := range [][]string{nil, {"no-port"}, {a, "dns:///localhost:" + port}} {
		if c, err := client.DialAll(addresses); err == nil {
			_ = c.Close()
			t.Errorf("DialAll(%q) does not fail", addresses)
		}
	}
}

func TestTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate()) // for 127.0.0.1 and example.com
	listener := listen(t)
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: certified.TLS.Certificates})))
	pb.RegisterPromptAssemblyServiceServer(s, pb.UnimplementedPromptAssemblyServiceServer{})
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)

	for name, test := range map[string]struct {
		config *tls.Config
		code   codes.Code
	}{
		"trusted":             {&tls.Config{RootCAs: roots}, codes.Unimplemented}, // which the server says
		"trusted, by a name":  {&tls.Config{RootCAs: roots, ServerName: "example.com"}, codes.Unimplemented},
		"the name of another": {&tls.Config{RootCAs: roots, ServerName: "example.net"}, codes.Unavailable},
		"the system's do not": {nil, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			opts := []client.Option{client.WithTLS(test.config), client.WithFailFast(), noPause()}
			_, err := list(t.Context(), dial(t, []string{listener.Addr().String()}, opts...))
			_ = failedWith(t, err, test.code)
			one, err := client.Dial(listener.Addr().String(), opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer one.Close()
			_, err = list(t.Context(), one)
			_ = failedWith(t, err, test.code)
		})
	}
}
