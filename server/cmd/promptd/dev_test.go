package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptassembly/promptassembly/server/dev"
)

// The commands that 'promptd dev' prints do what it says they do, in a shell and as they are printed.
func TestDevCommands(t *testing.T) {
	withPromptctl(t)
	sockets, err := os.MkdirTemp("", "promptd") // whose name is short enough for one
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(sockets) }()
	for _, test := range []struct{ name, folder, listen string }{
		{"port", "certificates", "127.0.0.1:0"},
		{"folder that has to be quoted", `it's a "folder" of $HOME & more`, "127.0.0.1:0"},
		{"host name", "certificates", "localhost:0"},
		{"unix socket", "certificates", "unix:" + sockets + "/it's one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), test.folder)
			d := startDev(t, "--listen", test.listen, "--dir", folder)
			d.wantCommands(t)
			isPrivate(t, folder)
		})
	}
}

// A folder can be used again, by a promptd that does not know what an earlier one wrote.
func TestDevFolderIsReused(t *testing.T) {
	withPromptctl(t)
	folder := filepath.Join(t.TempDir(), "new")
	first := startDev(t, "--dir", folder)
	first.wantCommands(t)
	ca := contentOf(t, dev.At(folder).CA)
	first.stop()
	if status := first.ends(t); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
	if len(contentOf(t, dev.At(folder).Harness.Key)) == 0 {
		t.Error("the folder was emptied at the end")
	}
	second := startDev(t, "--dir", folder)
	second.wantCommands(t)
	if contentOf(t, dev.At(folder).CA) == ca {
		t.Error("the authority is the one before")
	}
	isPrivate(t, folder)
}

func TestDevWithoutFolder(t *testing.T) {
	withPromptctl(t)
	d := startDev(t)
	d.wantCommands(t)
	folder := regexp.MustCompile(`with the files in (.*)\.\n`).FindStringSubmatch(d.printed)[1]
	isPrivate(t, folder)
	d.stop()
	if status := d.ends(t); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", folder, err)
	}
}

// What the policy file says is in force at once, as it is printed.
func TestDevPolicyChanges(t *testing.T) {
	withPromptctl(t)
	folder := t.TempDir()
	d := startDev(t, "--dir", folder)
	d.wantCommands(t)
	path := dev.At(folder).Policy
	changed := strings.Replace(contentOf(t, path), "  - name: agent\n", "  - name: agent\n    authorities: [current_turn]\n", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	d.log.wait(t, `msg="policy reloaded"`)
	if status, stdout, stderr := shell(t, d.agent); status != 0 || !selectsGo.MatchString(stdout) {
		t.Errorf("the agent that may: exit status %d, %s, %s", status, stdout, stderr)
	}
}

// selectsGo matches the table in which the memory that the harness asserts is selected.
var selectsGo = regexp.MustCompile(`(?m)^1 +go-this-time +current_turn .* selected$`)

// devRun is a 'promptd dev' that serves.
type devRun struct {
	running
	printed                 string
	harness, agent, granted string // the commands
}

// startDev runs 'promptd dev' on a free port, unless args say otherwise, until it has printed all.
func startDev(t *testing.T, args ...string) *devRun {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	status := make(chan int, 1)
	stderr, log := io.Pipe()
	var printed lockedText
	go func() {
		status <- run(ctx, append([]string{"dev", "--listen", "127.0.0.1:0", "--admin-listen", "off"}, args...), nil, &printed, log)
		close(status)
		_ = log.Close()
	}()
	d := &devRun{running: running{stop: stop, status: status, log: read(stderr)}}
	t.Cleanup(func() {
		stop()
		d.ends(t)
	})
	d.log.wait(t, "msg=serving ")
	last := regexp.MustCompile(`Who may assert what is in .*; a change is in force at once\.\n`)
	for deadline := time.Now().Add(20 * time.Second); !last.MatchString(printed.String()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("printed %q", printed.String())
		}
	}
	d.printed = printed.String()
	// A command is a paragraph that is indented.
	commands := regexp.MustCompile(`(?m)^  \S.*\n(?:    .*\n)*`).FindAllString(d.printed, -1)
	if len(commands) != 3 {
		t.Fatalf("%d commands in %s, want 3", len(commands), d.printed)
	}
	d.harness, d.agent, d.granted = commands[0], commands[1], commands[2]
	return d
}

// wantCommands checks what becomes of the commands.
func (d *devRun) wantCommands(t *testing.T) {
	t.Helper()
	status, stdout, stderr := shell(t, d.harness)
	if status != 0 || !selectsGo.MatchString(stdout) || stderr != "" {
		t.Errorf("the harness: exit status %d, %s, %s; want go-this-time selected; of %s", status, stdout, stderr, d.harness)
	}
	status, stdout, stderr = shell(t, d.agent)
	if status != 1 || !strings.Contains(stderr, "PERMISSION_DENIED (AUTHORITY_NOT_PERMITTED)") || stdout != "" {
		t.Errorf("the agent: exit status %d, %s, %s; want AUTHORITY_NOT_PERMITTED; of %s", status, stdout, stderr, d.agent)
	}
	status, stdout, stderr = shell(t, d.granted)
	if status != 0 || !selectsGo.MatchString(stdout) || stderr != "" {
		t.Errorf("the agent with a grant: exit status %d, %s, %s; want go-this-time selected; of %s", status, stdout, stderr, d.granted)
	}
}

// withPromptctl puts promptctl first on the PATH. It is built once for all tests.
func withPromptctl(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	folder, err := promptctl()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// promptctl builds promptctl and returns the folder that it is in, which is removed with the files.
var promptctl = sync.OnceValues(func() (folder string, err error) {
	folder = filepath.Join(filepath.Dir(party.CA), "bin")
	cmd := exec.Command("go", "build", "-o", filepath.Join(folder, "promptctl"), "github.com/promptassembly/promptassembly/client/cmd/promptctl")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, output)
	}
	return folder, nil
})

// isPrivate checks that nobody but its owner can read a folder and what is in it.
func isPrivate(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = fs.ModeDir | 0o700
		}
		if info.Mode() != want {
			t.Errorf("%s has the mode %s, want %s", path, info.Mode(), want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// lockedText is what is printed until now.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// shell runs a command as it is printed.
func shell(t *testing.T, command string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}
