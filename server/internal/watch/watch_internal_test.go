package watch

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"
)

// Nothing changes, and it is looked at all the same.
func TestLooksInAnyCase(t *testing.T) {
	looked := make(chan struct{})
	w, err := files([]string{filepath.Join(t.TempDir(), "file")}, slog.New(slog.DiscardHandler), func() {
		select {
		case looked <- struct{}{}:
		default:
		}
	}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-looked
	<-looked
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
