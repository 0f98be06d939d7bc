package watch_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/promptassembly/promptassembly/server/internal/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far below the minute after which files are looked at in any case.
const patience = 20 * time.Second

// watched watches paths and returns what is called.
func watched(t *testing.T, paths ...string) <-chan struct{} {
	t.Helper()
	changed := make(chan struct{}, 1)
	w, err := watch.Files(paths, slog.New(slog.DiscardHandler), func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return changed
}

func expect(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(patience):
		t.Fatal("a change went unseen")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// swap makes link point to target at once.
func swap(t *testing.T, target, link string) {
	t.Helper()
	must(t, os.Symlink(target, link+"_next"))
	must(t, os.Rename(link+"_next", link))
}

func TestChangesAreSeen(t *testing.T) {
	tests := []struct {
		name  string
		set   func(t *testing.T, dir string) (path string)
		steps []func(t *testing.T, dir string)
	}{
		{
			name: "written, replaced, removed and made again",
			set: func(t *testing.T, dir string) string {
				write(t, filepath.Join(dir, "file"), "1")
				return filepath.Join(dir, "file")
			},
			steps: []func(*testing.T, string){
				func(t *testing.T, dir string) { write(t, filepath.Join(dir, "file"), "2") },
				func(t *testing.T, dir string) {
					write(t, filepath.Join(dir, "next"), "3")
					must(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "file")))
				},
				func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "file"))) },
				func(t *testing.T, dir string) { write(t, filepath.Join(dir, "file"), "4") },
			},
		},
		{
			name: "a mounted secret",
			set: func(t *testing.T, dir string) string {
				write(t, filepath.Join(dir, "..1", "file"), "1")
				must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
				must(t, os.Symlink("..data/file", filepath.Join(dir, "file")))
				return filepath.Join(dir, "file")
			},
			steps: []func(*testing.T, string){
				func(t *testing.T, dir string) {
					write(t, filepath.Join(dir, "..2", "file"), "2")
					swap(t, "..2", filepath.Join(dir, "..data"))
					must(t, os.RemoveAll(filepath.Join(dir, "..1")))
				},
				func(t *testing.T, dir string) { write(t, filepath.Join(dir, "..2", "file"), "3") },
			},
		},
		{
			name: "the folder that a link leads to, and then another",
			set: func(t *testing.T, dir string) string {
				write(t, filepath.Join(dir, "a", "file"), "1")
				write(t, filepath.Join(dir, "b", "file"), "1")
				must(t, os.MkdirAll(filepath.Join(dir, "links"), 0o700))
				must(t, os.Symlink(filepath.Join(dir, "a", "file"), filepath.Join(dir, "links", "file")))
				return filepath.Join(dir, "links", "file")
			},
			steps: []func(*testing.T, string){
				func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a", "file"), "2") },
				func(t *testing.T, dir string) {
					swap(t, filepath.Join("..", "b", "file"), filepath.Join(dir, "links", "file"))
				},
				func(t *testing.T, dir string) { write(t, filepath.Join(dir, "b", "file"), "2") },
			},
		},
		{
			name: "a folder that appears, goes and comes back",
			set:  func(_ *testing.T, dir string) string { return filepath.Join(dir, "new", "file") },
			steps: []func(*testing.T, string){
				func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "new"), 0o700)) },
				func(t *testing.T, dir string) { write(t, filepath.Join(dir, "new", "file"), "1") },
				func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "new"))) },
				func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "new"), 0o700)) },
				func(t *testing.T, dir string) { write(t, filepath.Join(dir, "new", "file"), "2") },
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			changed := watched(t, test.set(t, dir))
			for _, step := range test.steps {
				step(t, dir)
				expect(t, changed)
			}
		})
	}
}

func TestManyChangesAreFew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var calls atomic.Int32
	called := make(chan struct{}, 100)
	w, err := watch.Files([]string{path}, slog.New(slog.DiscardHandler), func() {
		calls.Add(1)
		called <- struct{}{}
	})
	must(t, err)
	for range 100 {
		write(t, path, "text")
	}
	expect(t, called)
	must(t, w.Close())
	if n := calls.Load(); n > 20 {
		t.Errorf("100 changes without a pause were told %d times", n)
	}
}

// A folder in which something happens all the time cannot hide what changed.
func TestBusyFolder(t *testing.T) {
	dir := t.TempDir()
	changed := watched(t, filepath.Join(dir, "file"))
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(patience)
	for {
		select {
		case <-ticker.C:
			write(t, filepath.Join(dir, "other"), "text")
		case <-changed:
			return
		case <-end:
			t.Fatal("a change went unseen")
		}
	}
}

func TestCloseWaits(t *testing.T) {
	dir := t.TempDir()
	running := make(chan struct{}, 10)
	var done atomic.Bool
	w, err := watch.Files([]string{filepath.Join(dir, "file")}, slog.New(slog.DiscardHandler), func() {
		running <- struct{}{}
		time.Sleep(50 * time.Millisecond)
		done.Store(true)
	})
	must(t, err)
	write(t, filepath.Join(dir, "file"), "text")
	<-running
	must(t, w.Close())
	if !done.Load() {
		t.Error("Close returned while changed ran")
	}
}
