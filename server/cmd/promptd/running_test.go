package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// running is a promptd that serves.
type running struct {
	address, admin string
	stop           context.CancelFunc // as a signal does
	status         <-chan int
	log            *lines
}

// start runs promptd, on free ports unless args say otherwise, and returns when it says that it
// serves. The test ends it.
func start(t *testing.T, args ...string) running {
	t.Helper()
	r := startLogging(t, args...)
	r.address, r.admin = r.log.addresses(t)
	return r
}

// startLogging is start for a promptd that logs otherwise: it does not wait.
func startLogging(t *testing.T, args ...string) running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	status := make(chan int, 1)
	stderr, log := io.Pipe()
	go func() {
		status <- run(ctx, append(withAccess("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"), args...), nil, io.Discard, log)
		close(status)
		_ = log.Close()
	}()
	r := running{stop: stop, status: status, log: read(stderr)}
	t.Cleanup(func() {
		stop()
		r.ends(t)
	})
	return r
}

// ends returns the exit status, once the process ends.
func (r running) ends(t *testing.T) int {
	t.Helper()
	select {
	case status := <-r.status: // 0 when it was taken before
		return status
	case <-time.After(20 * time.Second):
		t.Fatal("promptd goes on")
		return 0
	}
}

// lines is a log as it is written.
type lines struct {
	mu   sync.Mutex
	all  []string
	more chan struct{} // closed at the end
}

func read(log io.Reader) *lines {
	l := &lines{more: make(chan struct{}, 1000)}
	go func() {
		defer close(l.more)
		for scanner := bufio.NewScanner(log); scanner.Scan(); {
			l.mu.Lock()
			l.all = append(l.all, scanner.Text())
			l.mu.Unlock()
			select {
			case l.more <- struct{}{}:
			default:
			}
		}
	}()
	return l
}

// wait returns what the pattern's groups match in the first line that it matches, once there is one.
func (l *lines) wait(t *testing.T, pattern string) []string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for match := regexp.MustCompile(pattern); ; {
		l.mu.Lock()
		for _, line := range l.all {
			if groups := match.FindStringSubmatch(line); groups != nil {
				l.mu.Unlock()
				return groups[1:]
			}
		}
		seen := l.all
		l.mu.Unlock()
		select {
		case _, ok := <-l.more:
			if !ok {
				l.mu.Lock()
				if len(l.all) == len(seen) {
					defer l.mu.Unlock()
					t.Fatalf("no %s in %q", pattern, seen)
				}
				l.mu.Unlock()
			}
		case <-timeout:
			t.Fatalf("no %s in %q", pattern, seen)
		}
	}
}

// rest returns all lines, once the process has ended.
func (l *lines) rest() []string {
	for range l.more { // until it is closed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// any reports whether there is a line with the text.
func (l *lines) any(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(line string) bool { return strings.Contains(line, text) })
}

func (l *lines) addresses(t *testing.T) (calls, admin string) {
	t.Helper()
	found := l.wait(t, `msg=serving address=(\S+) admin=(\S+) version=\S+`)
	return found[0], found[1]
}

// call makes a call, which must be answered.
func call(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	answer, err := pb.NewPromptAssemblyServiceClient(conn).ListTokenizers(ctx, new(pb.ListTokenizersRequest), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(answer.GetTokenizers(), func(c *pb.Tokenizer) bool { return c.GetName() == "estimate" }) {
		t.Errorf("tokenizers %v, want estimate among them", answer.GetTokenizers())
	}
}

// get asks the admin listener for a page. A status of 0 is no answer.
func get(t *testing.T, admin, path string) (status int, body string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// readyz waits until the admin listener says so with the status.
func readyz(t *testing.T, admin string, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		status, body := get(t, admin, "/readyz")
		if status == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("readyz is %d with %q, want %d", status, body, want)
		}
	}
}
