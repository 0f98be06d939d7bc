package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string // what is in them; empty: they are
	}{
		{"version", []string{"--version"}, 0, "promptd ", ""},
		{"unknown flag", []string{"--port", "1"}, exitUsage, "", "-port"},
		{"flag of another type", []string{"--drain-timeout", "soon"}, exitUsage, "", `"soon"`},
		{"argument", []string{"serve"}, exitUsage, "", `takes no arguments, got "serve"`},
		{"no port", []string{"--listen", "127.0.0.1"}, exitUsage, "", "missing port"},
		{"every interface", []string{"--listen", ":0"}, exitUsage, "", "not a loopback address: callers are not authenticated"},
		{"every IPv4 interface", []string{"--listen", "0.0.0.0:0"}, exitUsage, "", "not a loopback address"},
		{"every IPv6 interface", []string{"--listen", "[::]:0"}, exitUsage, "", "not a loopback address"},
		{"another host", []string{"--listen", "192.0.2.1:0"}, exitUsage, "", "not a loopback address"},
		{"a name", []string{"--listen", "localhost.example.org:0"}, exitUsage, "", "not a loopback address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // in case it serves
			defer cancel()
			var stdout, stderr bytes.Buffer
			if status := run(ctx, test.args, &stdout, &stderr); status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
			for _, output := range []struct{ name, got, want string }{
				{"stdout", stdout.String(), test.stdout}, {"stderr", stderr.String(), test.stderr},
			} {
				if !strings.Contains(output.got, output.want) || output.want == "" && output.got != "" {
					t.Errorf("%s %q, want %q", output.name, output.got, output.want)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var output bytes.Buffer
	if status := run(t.Context(), []string{"--help"}, &output, &output); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	for _, flag := range []string{"-listen address", "-drain-timeout duration", "-version"} {
		if !strings.Contains(output.String(), flag) {
			t.Errorf("no %s in %q", flag, output.String())
		}
	}
}

func TestPortThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	var stderr bytes.Buffer
	status := run(t.Context(), []string{"--listen", listener.Addr().String()}, io.Discard, &stderr)
	if status != exitFailure || !strings.Contains(stderr.String(), "address already in use") {
		t.Errorf("exit status %d with %q, want %d and the reason", status, stderr.String(), exitFailure)
	}
}

func TestServesUntilItIsStopped(t *testing.T) {
	d := startDaemon(t, "--listen", "localhost:0")
	conn := d.dial(t)
	resp, err := pb.NewPromptAssemblyServiceClient(conn).ListTokenizers(t.Context(), new(pb.ListTokenizersRequest))
	if err != nil {
		t.Fatal(err)
	}
	if tokenizers := resp.GetTokenizers(); len(tokenizers) != 1 || tokenizers[0].GetName() != "estimate" {
		t.Errorf("tokenizers %v, want estimate", tokenizers)
	}
	d.stop()
	if status := <-d.status; status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	if conn, err := net.Dial("tcp", d.address); err == nil {
		_ = conn.Close()
		t.Error("still listening")
	}
}

// A call that never ends holds the daemon up for no longer than its drain timeout.
func TestDrainTimeout(t *testing.T) {
	d := startDaemon(t, "--listen", "127.0.0.1:0", "--drain-timeout", "50ms")
	desc := &grpc.StreamDesc{ClientStreams: true}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := d.dial(t).NewStream(ctx, desc, pb.PromptAssemblyService_SelectMemory_FullMethodName, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	d.stop()
	select {
	case status := <-d.status:
		if status != 0 {
			t.Errorf("exit status %d, want 0", status)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still draining")
	}
	if err := stream.RecvMsg(new(pb.SelectMemoryResponse)); status.Code(err) != codes.Unavailable {
		t.Errorf("the call that never ends: %v, want UNAVAILABLE", err)
	}
}

// daemon is a run of promptd.
type daemon struct {
	address string
	stop    context.CancelFunc
	status  <-chan int
}

// startDaemon runs promptd and returns when it says that it serves.
func startDaemon(t *testing.T, args ...string) daemon {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	status := make(chan int, 1)
	stderr, log := io.Pipe()
	go func() {
		status <- run(ctx, args, io.Discard, log)
		_ = log.Close()
	}()
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() {
		t.Fatal("promptd said nothing")
	}
	serving := regexp.MustCompile(`msg=serving address=(\S+)`).FindStringSubmatch(lines.Text())
	if serving == nil {
		t.Fatalf("promptd says %s", lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return daemon{serving[1], stop, status}
}

func (d daemon) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(d.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
