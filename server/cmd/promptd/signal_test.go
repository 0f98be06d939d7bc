package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// A real process gets a real signal.
func TestSIGTERM(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd, log := process(t, "--drain-wait", "1s")
			address, admin := log.addresses(t)
			conn := dial(t, address)
			call(t, conn)
			readyz(t, admin, 200)
			send(t, cmd, sig)
			readyz(t, admin, 503)
			call(t, conn)
			if err := cmd.Wait(); err != nil {
				t.Errorf("promptd ends with %v, want exit status 0", err)
			}
		})
	}
}

func TestSecondSignal(t *testing.T) {
	cmd, log := process(t, "--drain-wait", "1h")
	_, admin := log.addresses(t)
	send(t, cmd, syscall.SIGTERM)
	readyz(t, admin, 503)
	begun := time.Now()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for running := true; running; { // the first signal may still be on its way to the default
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			running = false
		case <-time.After(100 * time.Millisecond):
		}
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("promptd ends with %v, want the signal", cmd.ProcessState)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
}

// process runs promptd as a process of its own, whose log it returns.
func process(t *testing.T, args ...string) (*exec.Cmd, *lines) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append(withAccess("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"), args...)...)
	cmd.Env = append(os.Environ(), asPromptd+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, read(stderr)
}

func send(t *testing.T, cmd *exec.Cmd, sig os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
