package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// result is what a run left behind.
type result struct {
	status         int
	stdout, stderr string
}

// promptctl runs one command line to its end.
func promptctl(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), append([]string{}, args...), strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// file writes a file for one test and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakeServer answers SelectMemory as a test wants it.
type fakeServer struct {
	pb.UnimplementedPromptAssemblyServiceServer
	answer func(context.Context, *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error)
}

func (f fakeServer) SelectMemory(ctx context.Context, req *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
	return f.answer(ctx, req)
}

// serve runs a server that answers SelectMemory with answer, and returns its address.
func serve(t *testing.T, answer func(context.Context, *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	pb.RegisterPromptAssemblyServiceServer(srv, fakeServer{answer: answer})
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(srv.Stop)
	return listener.Addr().String()
}

// silent is an address where nobody answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestWrongUsage(t *testing.T) {
	for _, test := range []struct {
		name  string
		args  []string
		error string
		hint  string
	}{
		{"command", []string{"chose"}, `unknown command "chose"`, "promptctl"},
		{"flag", []string{"select", "--sever", "x"}, "unknown flag: --sever", "promptctl select"},
		{"output", []string{"plan", "-o", "xml"}, "must be one of json, table", "promptctl plan"},
		{"color", []string{"demo", "--color", "red"}, "must be one of auto, always, never", "promptctl demo"},
		{"missing file", []string{"select", "no-such-file.json"}, "no-such-file.json", "promptctl select"},
		{"two files", []string{"select", "a.json", "b.json"}, "accepts at most 1 arg(s), received 2", "promptctl select"},
		{"table of lines", []string{"select", "--jsonl", "-o", "table"}, "--jsonl answers in JSON", "promptctl select"},
		{"no time", []string{"select", "--timeout", "0s"}, "--timeout must be more than 0", "promptctl select"},
		{"forgotten variable", []string{"select", "--server", ""}, "--server needs an address", "promptctl select"},
		{"argument of demo", []string{"demo", "x"}, `unknown command "x"`, "promptctl demo"},
		{"shell", []string{"completion", "tcsh"}, `unknown command "tcsh"`, "promptctl completion"},
		{"topic of help", []string{"help", "chose"}, `there is no command "chose"`, "promptctl help"},
		{"no requests", []string{"eval"}, "accepts 1 arg(s), received 0", "promptctl eval"},
		{"no evidence", []string{"eval", "--evidence", "no-such-file", "-"}, "no-such-file", "promptctl eval"},
		{"lines with several tokenizers", []string{"select", "--jsonl", "--tokenizer", "estimate,gpt-4o"}, "cannot go with several tokenizers", "promptctl select"},
		{"unknown tokenizer", []string{"count", "--tokenizer", "gpt", "-"}, `there is no tokenizer "gpt"`, "promptctl count"},
		{"empty tokenizer", []string{"count", "--tokenizer", "estimate,", "-"}, "there is an empty name", "promptctl count"},
		{"no tokenizer file", []string{"count", "--tokenizer-file", "q=no-such-file", "-"}, "--tokenizer-file q: open no-such-file", "promptctl count"},
		{"tokenizer file without a name", []string{"count", "--tokenizer-file", "no-such-file", "-"}, "is not NAME=FILE", "promptctl count"},
		{"tokenizer file that is none", []string{"count", "--tokenizer-file", "q=main.go", "-"}, "--tokenizer-file q: main.go: tokenizer.json: ", "promptctl count"},
		{"tokenizers of one name", []string{"count", "--tokenizer-file", "q=" + gpt2File, "--tokenizer-file", "q=" + gpt2File, "-"}, "has the name of another", "promptctl count"},
		{"no text", []string{"count", "no-such-file"}, "no-such-file", "promptctl count"},
		{"argument of tokenizers", []string{"tokenizers", "x"}, `unknown command "x"`, "promptctl tokenizers"},
		{"no policy", []string{"eval", "--policy", `{"topK":"many"}`, "-"}, "--policy: ", "promptctl eval"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := promptctl(t, "", test.args...)
			if got.status != 2 {
				t.Errorf("status %d, want 2", got.status)
			}
			if got.stdout != "" {
				t.Errorf("stdout is not empty: %q", got.stdout)
			}
			headline, hint, _ := strings.Cut(got.stderr, "\n")
			if !strings.HasPrefix(headline, "promptctl: ") || !strings.Contains(headline, test.error) {
				t.Errorf("stderr begins with %q, want %q in it", headline, test.error)
			}
			if want := "See '" + test.hint + " --help'.\n"; hint != want {
				t.Errorf("hint %q, want %q", hint, want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"select", "--help"}, {"plan", "--help"}, {"demo", "--help"}, {"eval", "--help"}, {"count", "--help"}, {"tokenizers", "--help"}} {
		got := promptctl(t, "", args...)
		if got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, "Examples:\n  promptctl ") {
			t.Errorf("%q: status %d, stderr %q, stdout without examples:\n%s", args, got.status, got.stderr, got.stdout)
		}
	}
	for _, args := range [][]string{{"--help"}, {"select", "--help"}, {"plan", "--help"}} {
		if got := promptctl(t, "", args...); !strings.Contains(got.stdout, "trusts") {
			t.Errorf("%q does not say that the server in this process trusts its caller", args)
		}
	}
}

func TestVersion(t *testing.T) {
	got := promptctl(t, "", "--version")
	if want := (result{0, "promptctl " + server.Version() + "\n", ""}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := promptctl(t, "", "completion", shell); got.status != 0 || !strings.Contains(got.stdout, "promptctl") {
			t.Errorf("%s: status %d, %d bytes", shell, got.status, len(got.stdout))
		}
	}
	if got := promptctl(t, "", "__complete", "count", "--tokenizer", ""); !strings.Contains(got.stdout, "\no200k_base\n") {
		t.Errorf("--tokenizer completes to %q", got.stdout)
	}
	if got := promptctl(t, "", "__complete", "select", "-o", ""); !strings.HasPrefix(got.stdout, "json\ntable\n") {
		t.Errorf("-o completes to %q", got.stdout)
	}
}
