// Package watch tells when files change.
package watch

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quiet   = 100 * time.Millisecond
	longest = time.Second // that a busy folder can put off what changed
	always  = time.Minute
)

// Watcher watches files until it is closed.
type Watcher struct {
	paths   []string
	log     *slog.Logger
	changed func()
	events  *fsnotify.Watcher
	failed  map[string]bool // folders that cannot be watched, and were logged
	stop    chan struct{}
	stopped chan struct{}
}

// Files calls changed, on a goroutine of its own and never twice at the same time, once it has been
// quiet for 100 ms after anything changed in a folder of one of the paths, or of what their symbolic
// links point to (mounted secrets swap links), or for 1 s it has not been quiet. It does so once a
// minute in any case: an event can be lost, and a network file system has none. Folders are watched, not
// files, and those that links lead to after a change are watched from then on. What is not there yet is
// found when it appears. A folder that cannot be watched is logged, and left to the minute.
//
// It fails only if the system allows no more watchers.
func Files(paths []string, log *slog.Logger, changed func()) (*Watcher, error) {
	return files(paths, log, changed, always)
}

func files(paths []string, log *slog.Logger, changed func(), always time.Duration) (*Watcher, error) {
	w := &Watcher{
		log:     log,
		changed: changed,
		failed:  make(map[string]bool),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", path, err)
		}
		w.paths = append(w.paths, absolute)
	}
	var err error
	if w.events, err = fsnotify.NewWatcher(); err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w.follow()
	go w.run(always)
	return w, nil
}

// Close ends the watch, and returns once changed no longer runs. Changed must not call it.
func (w *Watcher) Close() error {
	close(w.stop)
	<-w.stopped
	return w.events.Close()
}

func (w *Watcher) run(always time.Duration) {
	defer close(w.stopped)
	anyway := time.NewTicker(always)
	defer anyway.Stop()
	var calm <-chan time.Time // nil: nothing changed
	var first time.Time
	for {
		select {
		case <-w.stop:
			return
		case <-w.events.Events:
		case err := <-w.events.Errors: // what changed may have been lost with it
			w.log.Warn("watching files failed", "error", err)
		case <-anyway.C:
			calm = nil
			w.tell()
			continue
		case <-calm:
			calm = nil
			w.tell()
			continue
		}
		if calm == nil {
			first = time.Now()
		}
		calm = time.After(min(quiet, longest-time.Since(first)))
	}
}

// tell follows the links before it tells, so that what changes after what changed has read is an event.
func (w *Watcher) tell() {
	w.follow()
	w.changed()
}

// follow watches the folders that the paths lead through now, and no others.
func (w *Watcher) follow() {
	wanted := w.folders()
	for {
		for folder := range wanted {
			// One that is watched already may be another folder by the same name by now.
			err := w.events.Add(folder)
			if err != nil && !w.failed[folder] {
				w.log.Warn("a folder cannot be watched; it is looked at once a minute", "folder", folder, "error", err)
			}
			w.failed[folder] = err != nil
		}
		// A link that was swapped before its folder was watched leads elsewhere without an event.
		again := w.folders()
		more := false
		for folder := range again {
			more = more || !wanted[folder]
		}
		wanted = again
		if !more {
			break
		}
	}
	for _, folder := range w.events.WatchList() {
		if !wanted[folder] {
			_ = w.events.Remove(folder) // an error means that it is gone
		}
	}
	for folder := range w.failed {
		if !wanted[folder] {
			delete(w.failed, folder)
		}
	}
}

func (w *Watcher) folders() map[string]bool {
	all := make(map[string]bool)
	for _, path := range w.paths {
		for _, folder := range foldersOf(path) {
			all[folder] = true
		}
	}
	return all
}
