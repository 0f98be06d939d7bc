package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// What a line that is no request, and one that is too long, are answered by.
const (
	noRequestLine = `{"error":{"code":"INVALID_ARGUMENT","message":"` + invalidRequest + `","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_REQUEST","domain":"promptassembly"}]}}` + "\n"
	tooLongLine = `{"error":{"code":"RESOURCE_EXHAUSTED","message":"the line is longer than 64 MiB","details":[]}}` + "\n"
)

// scopeLine is a request that echo answers with echoLine.
func scopeLine(n int) string { return fmt.Sprintf(`{"userScope":"%d"}`+"\n", n) }
func echoLine(n int) string  { return fmt.Sprintf(`{"plan":{"userScope":"%d"}}`+"\n", n) }

func echo(req *pb.SelectMemoryRequest) *pb.SelectMemoryResponse {
	return &pb.SelectMemoryResponse{Plan: &pb.MemoryContextPlan{UserScope: req.GetUserScope()}}
}

func TestLinesInProcess(t *testing.T) {
	refused := strings.Replace(goodRequest, `"score":0.9`, `"score":2`, 1)
	got := promptctl(t, goodRequest+"\n\nnull\n"+refused+"\nno JSON\n"+goodRequest, "select", "--jsonl")
	if got.status != 0 || got.stderr != "6 answered, 4 refused\n" {
		t.Errorf("status %d, stderr %q", got.status, got.stderr)
	}
	lines := strings.SplitAfter(got.stdout, "\n")
	if len(lines) != 7 || lines[6] != "" {
		t.Fatalf("want six whole lines, got %q", lines)
	}
	for i, prefix := range []string{
		`{"plan":{"context":"`, noRequestLine, noRequestLine,
		`{"error":{"code":"INVALID_ARGUMENT","message":"` + invalidRequest + `","details":[{`, noRequestLine, lines[0],
	} {
		if !strings.HasPrefix(lines[i], prefix) {
			t.Errorf("line %d is %q, want it to begin with %q", i+1, lines[i], prefix)
		}
	}
	if !strings.Contains(lines[3], `"field":"candidates[0].score"`) {
		t.Errorf("line 4 lacks the violation: %s", lines[3])
	}
}

// Only what follows the last newline is nothing when it is empty.
func TestBlankLines(t *testing.T) {
	for input, want := range map[string]string{"": "", "\n": noRequestLine, " ": noRequestLine, "\r\n\n": noRequestLine + noRequestLine} {
		if got := promptctl(t, input, "select", "--jsonl"); got.status != 0 || got.stdout != want {
			t.Errorf("%q: status %d, stdout %q, want %q", input, got.status, got.stdout, want)
		}
	}
}

// Calls run side by side: the first is answered only once the fiftieth after it has come in, and
// others sooner than those before them. The output is in the order of the input all the same.
func TestOrder(t *testing.T) {
	const lines = 500
	later := make(chan struct{})
	address := serve(t, func(_ context.Context, req *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
		n, err := strconv.Atoi(req.GetUserScope())
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, "no number")
		}
		switch n {
		case 0:
			<-later
		case 50:
			close(later)
		default:
			time.Sleep(time.Duration(10-n%10) * time.Millisecond)
		}
		return echo(req), nil
	})
	var input, want strings.Builder
	for n := range lines {
		input.WriteString(scopeLine(n))
		want.WriteString(echoLine(n))
	}
	got := promptctl(t, input.String(), "select", "--jsonl", "--server", address)
	if got.status != 0 || got.stderr != "500 answered, 0 refused\n" {
		t.Errorf("status %d, stderr %q", got.status, got.stderr)
	}
	if got.stdout != want.String() {
		t.Error("the answers are not in the order of the requests")
	}
}

// Who writes one line through a pipe gets its answer before writing the next.
func TestAnswerComesWhenInputPauses(t *testing.T) {
	stdin, toStdin := io.Pipe()
	fromStdout, stdout := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(t.Context(), []string{"select", "--jsonl"}, stdin, stdout, io.Discard)
	}()
	answers := bufio.NewReader(fromStdout)
	for range 3 {
		_, _ = io.WriteString(toStdin, goodRequest+"\n")
		if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"plan":`) {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	toStdin.Close()
	if status := <-done; status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestLineTooLong(t *testing.T) {
	const mebibyte = 1 << 20
	blanks := bytes.Repeat([]byte(" "), mebibyte)
	var parts []io.Reader
	add := func(mebibytes int, end string) {
		for range mebibytes {
			parts = append(parts, bytes.NewReader(blanks))
		}
		parts = append(parts, strings.NewReader(end))
	}
	add(64, "\n")                    // as long as a line may be
	add(64, " \n")                   // one byte longer
	add(400, "\n"+goodRequest)       // much longer
	add(0, "\n")                     // ends the request
	add(64, "  and never a newline") // too long at the end of the input
	peak := newHeapPeak()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"select", "--jsonl"}, peak.reader(io.MultiReader(parts...)), &stdout, &stderr)
	if status != 0 || stderr.String() != "5 answered, 4 refused\n" {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
	lines := strings.SplitAfter(stdout.String(), "\n")
	if len(lines) != 6 || lines[0] != noRequestLine || lines[1] != tooLongLine || lines[2] != tooLongLine ||
		!strings.HasPrefix(lines[3], `{"plan":`) || lines[4] != tooLongLine {
		t.Errorf("got %.300q", lines)
	}
	if peak.bytes > 256<<20 {
		t.Errorf("the heap grew by %d MiB, although no line over 64 MiB is held", peak.bytes>>20)
	}

	whole := promptctl(t, strings.Repeat(" ", 64*mebibyte+1), "select")
	if want := "promptctl: standard input: longer than 64 MiB\n"; whole.status != 1 || whole.stderr != want ||
		!strings.Contains(whole.stdout, `"code": "RESOURCE_EXHAUSTED"`) {
		t.Errorf("one request that is too long: %+v", whole)
	}
}

// heapPeak samples what the garbage collector finds alive while a stream is in use, beyond what was
// alive before, such as the tables of tokenizers.
type heapPeak struct {
	before, bytes uint64
	count         int
}

func newHeapPeak() *heapPeak {
	runtime.GC()
	return &heapPeak{before: liveHeap()}
}

func (p *heapPeak) sample() {
	if p.count++; p.count%100 == 0 {
		p.bytes = max(p.bytes, max(liveHeap(), p.before)-p.before)
	}
}

func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func (p *heapPeak) reader(in io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		p.sample()
		return in.Read(b)
	})
}

// repeat is an input of n times the same line, and counts how many it has handed out.
func repeat(line string, n int64, handedOut *atomic.Int64) io.Reader {
	var rest []byte
	return readerFunc(func(b []byte) (int, error) {
		if len(rest) == 0 {
			if handedOut.Load() == n {
				return 0, io.EOF
			}
			handedOut.Add(1)
			rest = []byte(line)
		}
		taken := copy(b, rest)
		rest = rest[taken:]
		return taken, nil
	})
}

// 50,000 lines of 4 KiB are 200 MiB; what is held of them stays far below.
func TestMemoryOnLongInput(t *testing.T) {
	const lines = 50_000
	var handedOut atomic.Int64
	peak := newHeapPeak()
	written := 0
	stdout := writerFunc(func(b []byte) (int, error) {
		written += bytes.Count(b, []byte("\n"))
		return len(b), nil
	})
	var stderr bytes.Buffer
	input := peak.reader(repeat(strings.Repeat("x", 4095)+"\n", lines, &handedOut))
	status := run(t.Context(), []string{"select", "--jsonl"}, input, stdout, &stderr)
	if status != 0 || written != lines || stderr.String() != "50000 answered, 50000 refused\n" {
		t.Errorf("status %d, %d lines, stderr %q", status, written, stderr.String())
	}
	if peak.bytes > 64<<20 {
		t.Errorf("the heap grew by %d MiB", peak.bytes>>20)
	}
}

// While nothing is answered, reading stops: at so many lines, and at so many bytes.
func TestInFlightIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		line     string
		inFlight int64
	}{
		"lines": {`{"userScope":"u"}` + "\n", 128},
		"bytes": {`{"userScope":"u","tokenizer":"` + strings.Repeat("x", 6<<20) + `"}` + "\n", 2}, // 16 MiB hold two of 6
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			var arrived, most, handedOut atomic.Int64
			address := serve(t, func(_ context.Context, req *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
				arrived.Add(1)
				<-release
				return echo(req), nil
			})
			go func() {
				defer close(release)
				for deadline := time.Now().Add(30 * time.Second); arrived.Load() < test.inFlight && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(100 * time.Millisecond) // in which more would come
				most.Store(arrived.Load())
				if read := handedOut.Load(); read > test.inFlight+2 {
					t.Errorf("%d lines were read ahead", read)
				}
			}()
			var stdout bytes.Buffer
			status := run(t.Context(), []string{"select", "--jsonl", "--server", address},
				repeat(test.line, 3*test.inFlight, &handedOut), &stdout, io.Discard)
			if got := int64(strings.Count(stdout.String(), "\n")); status != 0 || got != 3*test.inFlight {
				t.Errorf("status %d, %d answers", status, got)
			}
			if most.Load() != test.inFlight {
				t.Errorf("%d calls in flight, want %d", most.Load(), test.inFlight)
			}
		})
	}
}

func TestBrokenPipeIsQuiet(t *testing.T) {
	var handedOut atomic.Int64
	gone := writerFunc(func([]byte) (int, error) { return 0, fmt.Errorf("write: %w", syscall.EPIPE) })
	var stderr bytes.Buffer
	status := run(t.Context(), []string{"select", "--jsonl"}, repeat("x\n", 1_000_000_000, &handedOut), gone, &stderr)
	if status != 1 || stderr.String() != "" {
		t.Errorf("status %d, stderr %q, want 1 and nothing", status, stderr.String())
	}
}

func TestFailingStreams(t *testing.T) {
	broken := errors.New("the disk is on fire")
	var stdout, stderr bytes.Buffer
	input := io.MultiReader(strings.NewReader(goodRequest+"\n{"), readerFunc(func([]byte) (int, error) { return 0, broken }))
	status := run(t.Context(), []string{"select", "--jsonl"}, input, &stdout, &stderr)
	if want := "1 answered, 0 refused\npromptctl: the disk is on fire\n"; status != 1 || stderr.String() != want || strings.Count(stdout.String(), "\n") != 1 {
		t.Errorf("reading: status %d, stderr %q, stdout %q", status, stderr.String(), stdout.String())
	}
	stderr.Reset()
	full := writerFunc(func([]byte) (int, error) { return 0, broken })
	status = run(t.Context(), []string{"select", "--jsonl"}, strings.NewReader(goodRequest), full, &stderr)
	if status != 1 || !strings.HasSuffix(stderr.String(), "promptctl: the disk is on fire\n") {
		t.Errorf("writing: status %d, stderr %q", status, stderr.String())
	}
}

func TestNoServerIsSaidOnce(t *testing.T) {
	got := promptctl(t, strings.Repeat(goodRequest+"\n", 500), "select", "--jsonl", "--server", silent(t))
	if got.status != 1 || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 || !strings.HasPrefix(got.stderr, "promptctl: cannot call 127.0.0.1:") {
		t.Errorf("got %+v", got)
	}
}

// A server that goes away ends the run; what was answered before stands.
func TestLostConnection(t *testing.T) {
	address := serve(t, func(_ context.Context, req *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
		if req.GetUserScope() == "2" {
			return nil, status.Error(codes.Unavailable, "upstream connect error")
		}
		return echo(req), nil
	})
	got := promptctl(t, scopeLine(0)+scopeLine(1)+scopeLine(2)+scopeLine(3), "select", "--jsonl", "--server", address)
	want := result{1, echoLine(0) + echoLine(1), "2 answered, 0 refused\npromptctl: cannot call " + address + ": upstream connect error\n"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// UNAVAILABLE with the service's own reason is an answer to that line.
func TestUnavailableForAReason(t *testing.T) {
	address := refuse(t, codes.Unavailable, "the decision log cannot be written", &errdetails.ErrorInfo{Reason: "AUDIT_UNAVAILABLE", Domain: "promptassembly"})
	got := promptctl(t, scopeLine(0)+scopeLine(1), "select", "--jsonl", "--timeout", "1s", "--server", address)
	if got.status != 0 || got.stderr != "2 answered, 2 refused\n" || strings.Count(got.stdout, `{"error":{"code":"UNAVAILABLE"`) != 2 {
		t.Errorf("got %+v", got)
	}
}

// A signal ends a run that waits for input, and one that waits for an answer.
func TestInterrupt(t *testing.T) {
	arrived := make(chan struct{}, 1)
	address := serve(t, func(ctx context.Context, _ *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
		arrived <- struct{}{}
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	})
	for name, test := range map[string]struct {
		args  []string
		input string
	}{
		"line to come":    {[]string{"select", "--jsonl"}, ""},
		"request to come": {[]string{"select"}, ""},
		"answer to come":  {[]string{"select", "--jsonl", "--server", address}, "{}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			stdin, toStdin := io.Pipe()
			defer toStdin.Close()
			go func() {
				if test.input != "" {
					_, _ = io.WriteString(toStdin, test.input)
					<-arrived
				}
				cancel(errors.New("interrupt signal received"))
			}()
			var stdout, stderr bytes.Buffer
			status := run(ctx, test.args, stdin, &stdout, &stderr)
			if status != 1 || stdout.Len() > 0 || !strings.HasSuffix(stderr.String(), "promptctl: interrupt signal received\n") {
				t.Errorf("status %d, stdout %q, stderr %q", status, stdout.String(), stderr.String())
			}
		})
	}
}
