package load

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The variables that make a process of the test binary one that floods a server.
const (
	floodVariable = "PROMPTASSEMBLY_LOAD_FLOOD" // the server's address
	rateVariable  = "PROMPTASSEMBLY_LOAD_RATE"  // calls a second
)

// flooded is what became of the calls of a flood.
type flooded struct{ Answered, Refused int }

// flood makes calls over one connection until its input ends, and writes what became of them.
func flood(address string) error {
	rate, err := strconv.ParseFloat(os.Getenv(rateVariable), 64)
	if err != nil {
		return err
	}
	g, err := newGenerator(address, 1, nil, requestOf(100))
	if err != nil {
		return err
	}
	defer g.close()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	o := g.open(ctx, rate, time.Hour)
	return json.NewEncoder(os.Stdout).Encode(flooded{len(o.answered), len(o.refused)})
}

// startFlood floods a server from a process on the second processor, as this one is, until end.
func startFlood(b *testing.B, address string, rate float64) (end func() flooded) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), floodVariable+"="+address, rateVariable+"="+strconv.FormatFloat(rate, 'f', -1, 64))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return func() (f flooded) {
		_ = stdin.Close()
		if err := json.NewDecoder(stdout).Decode(&f); err != nil {
			b.Fatal(err)
		}
		_ = cmd.Wait()
		return f
	}
}
