package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/dev"
)

// kind says what a server process answers.
type kind string

const (
	// whole is the server as promptd runs it.
	whole kind = "whole"
	// baseline does all that whole does but selecting and converting: every answer is the first one.
	baseline kind = "baseline"
	// open is whole, but believes everybody.
	open kind = "open"
	// cold is whole, but every call comes from a scope that was never there before.
	cold kind = "cold"
)

// accessVariable is the folder of who may call a server; empty: everybody, in plaintext.
const accessVariable = "PROMPTASSEMBLY_LOAD_ACCESS"

// kindVariable makes a process of the test binary a server.
const kindVariable = "PROMPTASSEMBLY_LOAD_SERVER"

func TestMain(m *testing.M) {
	if k := kind(os.Getenv(kindVariable)); k != "" {
		if err := serve(k); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if address := os.Getenv(floodVariable); address != "" {
		if err := flood(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// usage is what a server process has used so far, and what it holds.
type usage struct {
	CPU        time.Duration // user and system
	Heap       uint64        // bytes in use, garbage not yet collected included
	Peak       uint64        // resident bytes at most
	Goroutines int
}

// serve answers calls, and writes its usage for each line that it reads, until its input ends. A line
// "collect" collects garbage before.
func serve(k kind) error {
	debug.SetGCPercent(400)
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	cfg := server.Config{
		Logger:  slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		CallLog: server.CallLog{On: true},
		Metrics: prometheus.NewRegistry(),
	}
	if folder := os.Getenv(accessVariable); folder != "" {
		if cfg.Access, listener, err = secure(k, folder, listener); err != nil {
			return err
		}
	}
	if k == baseline {
		cfg.Interceptors = append(cfg.Interceptors, new(prebuilt).answer)
	}
	if k == cold {
		cfg.Interceptors = append(cfg.Interceptors, strange())
	}
	s := server.New(cfg)
	go func() { _ = s.Serve(listener) }()
	fmt.Println(listener.Addr())

	encoder := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "collect" {
			debug.FreeOSMemory()
		}
		if err := encoder.Encode(used()); err != nil {
			return err
		}
	}
	s.Stop()
	return nil
}

// secure returns who may call, and the listener; a server that believes everybody has the same
// connections otherwise.
func secure(k kind, folder string, listener net.Listener) (*server.Access, net.Listener, error) {
	cfg := accessIn(folder)
	if k != open {
		access, err := server.OpenAccess(context.Background(), cfg)
		return access, listener, err
	}
	if !cfg.TLS.On() {
		return nil, listener, nil
	}
	secured, err := serverTLS(dev.At(folder))
	return nil, tls.NewListener(listener, secured), err
}

func used() usage {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{
		CPU:        time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Heap:       m.HeapAlloc,
		Peak:       uint64(r.Maxrss) << 10,
		Goroutines: runtime.NumGoroutine(),
	}
}

// prebuilt answers every call with the answer to the first.
type prebuilt struct {
	once  sync.Once
	first any
	err   error
}

func (p *prebuilt) answer(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	p.once.Do(func() { p.first, p.err = handler(ctx, req) })
	return p.first, p.err
}

// process is a server in a process of its own, on the first processor.
type process struct {
	address string
	stdin   io.WriteCloser
	answers *json.Decoder
}

// start starts a server, with the folder of who may call it; empty: everybody, in plaintext.
func start(b *testing.B, k kind, access string) *process {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), kindVariable+"="+string(k), accessVariable+"="+access)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	runtime.LockOSThread() // the process inherits the processors of this thread
	defer runtime.UnlockOSThread()
	runOn(b, 0, 0)
	err = cmd.Start()
	runOn(b, 0, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
		_ = log.Close()
	})
	lines := bufio.NewReader(stdout)
	address, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return &process{address[:len(address)-1], stdin, json.NewDecoder(lines)}
}

// used returns the usage of the process.
func (p *process) used(b *testing.B) usage { return p.ask(b, "used") }

// collect is used after a collection of garbage.
func (p *process) collect(b *testing.B) usage { return p.ask(b, "collect") }

func (p *process) ask(b *testing.B, line string) (u usage) {
	b.Helper()
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		b.Fatal(err)
	}
	if err := p.answers.Decode(&u); err != nil {
		b.Fatal(err)
	}
	return u
}

// runOn binds a thread to a processor; 0 is the thread that calls.
func runOn(b *testing.B, thread, processor int) {
	b.Helper()
	var set unix.CPUSet
	set.Set(processor)
	if err := unix.SchedSetaffinity(thread, &set); err != nil {
		b.Skipf("processor %d cannot be had: %v", processor, err)
	}
}
