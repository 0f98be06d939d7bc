package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns a pseudo-terminal: what is written to slave is read from master.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// shown collects what a terminal shows until its slave is closed.
func shown(master, slave *os.File) (end func() string) {
	var text bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&text, master) // ends with EIO
	}()
	return func() string {
		slave.Close()
		<-done
		return text.String()
	}
}

func TestTerminalAsInput(t *testing.T) {
	_, slave := openTerminal(t)
	for _, args := range [][]string{{"select"}, {"plan", "--jsonl"}} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), args, slave, &stdout, &stderr)
		if status != 2 || !strings.HasPrefix(stderr.String(), "promptctl: no request: name a FILE") {
			t.Errorf("%q: status %d, stderr %q", args, status, stderr.String())
		}
	}
}

func TestColourOnTerminal(t *testing.T) {
	for _, test := range []struct {
		noColor, term, when string
		coloured            bool
	}{
		{"", "xterm", "auto", true},
		{"1", "xterm", "auto", false},
		{"", "dumb", "auto", false},
		{"1", "xterm", "always", true},
		{"", "xterm", "never", false},
	} {
		t.Setenv("NO_COLOR", test.noColor)
		t.Setenv("TERM", test.term)
		master, slave := openTerminal(t)
		end := shown(master, slave)
		status := run(t.Context(), []string{"demo", "--color", test.when}, strings.NewReader(""), slave, io.Discard)
		if got := strings.Contains(end(), "\x1b[32m"); status != 0 || got != test.coloured {
			t.Errorf("%+v: status %d, coloured %v", test, status, got)
		}
	}
}

// A long run shows how far it is, and the last line stands alone.
func TestProgressOnTerminal(t *testing.T) {
	master, slave := openTerminal(t)
	end := shown(master, slave)
	stdin, toStdin := io.Pipe()
	go func() {
		defer toStdin.Close()
		_, _ = io.WriteString(toStdin, goodRequest+"\n")
		time.Sleep(progressAfter + 100*time.Millisecond)
		_, _ = io.WriteString(toStdin, goodRequest+"\n")
	}()
	status := run(t.Context(), []string{"select", "--jsonl"}, stdin, io.Discard, slave)
	if got, want := end(), "\r2 answered, 0 refused\r\x1b[K2 answered, 0 refused\r\n"; status != 0 || got != want {
		t.Errorf("status %d, the terminal shows %q, want %q", status, got, want)
	}
}
