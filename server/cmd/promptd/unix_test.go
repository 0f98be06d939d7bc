package main

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnixSockets(t *testing.T) {
	dir := t.TempDir()
	calls, admin := filepath.Join(dir, "calls.sock"), filepath.Join(dir, "admin.sock")
	for _, path := range []string{calls, admin} { // as a process that was killed leaves them
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = listener.Close()
	}

	p := start(t, "--listen", "unix:"+calls, "--admin-listen", "unix:"+admin)
	if p.address != "unix:"+calls || p.admin != "unix:"+admin {
		t.Errorf("serving on %s and %s", p.address, p.admin)
	}
	call(t, dial(t, p.address))
	var stderr bytes.Buffer
	status := run(t.Context(), withAccess("--listen", p.address, "--admin-listen", "off"), nil, &stderr, &stderr)
	if status != exitFailure || !strings.Contains(stderr.String(), "address already in use") {
		t.Errorf("another process: exit status %d with %s", status, stderr.String())
	}
	call(t, dial(t, p.address))

	p.stop()
	if status := p.ends(t); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
	if left, err := fs.Glob(os.DirFS(dir), "*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What is no socket is not replaced.
func TestFileInPlaceOfASocket(t *testing.T) {
	path := writeFile(t, "precious")
	var stderr bytes.Buffer
	status := run(t.Context(), withAccess("--listen", "unix:"+path, "--admin-listen", "127.0.0.1:0"), nil, &stderr, &stderr)
	if status != exitFailure || !strings.Contains(stderr.String(), "is no socket") {
		t.Errorf("exit status %d with %s", status, stderr.String())
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
