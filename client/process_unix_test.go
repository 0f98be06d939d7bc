//go:build unix

package client_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// startProcess runs a server in a process of its own, for the length of the test.
func startProcess(t *testing.T) (*os.Process, string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Process, strings.TrimSpace(address)
}

// load makes calls of three sizes, side by side, whose answers are as large as the requests, until
// it is told to end. It counts the calls that are answered.
func load(t *testing.T, c *client.Client) (answered *atomic.Int64, end func()) {
	answered = new(atomic.Int64)
	var stop atomic.Bool
	var group sync.WaitGroup
	for _, load := range []struct {
		side int // how many side by side
		req  *pb.SelectMemoryRequest
	}{
		{8, wholeRequest(10, 1_000)},
		{4, wholeRequest(10, 60_000)},
		{2, wholeRequest(60, 200_000)},
	} {
		for range load.side {
			group.Go(func() {
				for !stop.Load() {
					start := time.Now()
					answer, err := c.SelectMemory(t.Context(), load.req)
					if err != nil {
						t.Errorf("after %s: %+v", time.Since(start), err)
						return
					}
					if answer.GetPlan().GetContext() == "" {
						t.Error("an empty answer")
						return
					}
					answered.Add(1)
				}
			})
		}
	}
	return answered, func() {
		stop.Store(true)
		group.Wait()
	}
}

// With default options no call fails while one of two servers is killed, or stopped, at a time at
// which requests and answers of all sizes are on their way.
func TestServerDies(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	for name, test := range map[string]struct {
		signal os.Signal
		rounds int
	}{
		"killed": {syscall.SIGKILL, 3}, "stopped": {syscall.SIGSTOP, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for range test.rounds {
				first, a := startProcess(t)
				_, b := startProcess(t)
				c := dial(t, []string{a, b})
				answered, end := load(t, c)
				time.Sleep(700 * time.Millisecond)
				if err := first.Signal(test.signal); err != nil {
					t.Error(err)
				}
				before := answered.Load()
				time.Sleep(500 * time.Millisecond)
				end()
				t.Logf("%d calls answered before, %d after", before, answered.Load()-before)
				if before == 0 {
					t.Error("no call was answered before the server died")
				}
			}
		})
	}
}
