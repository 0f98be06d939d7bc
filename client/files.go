package client

import (
	"errors"
	"io/fs"
	"sync"
	"time"
)

// fileGrace is for how long what a file held before is used, once the file cannot be read or makes
// no sense: it may be in the middle of being replaced.
const fileGrace = time.Minute

// FileError is a file that cannot be read, or does not hold what it should. It quotes nothing of the
// file.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the file, such as fs.ErrNotExist.
func (e *FileError) Unwrap() error { return e.Err }

// fileError returns err as one of the file at path, which it then names once.
func fileError(path string, err error) error {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		err = wrapped.Err
	}
	return &FileError{path, err}
}

// fresh is what files hold, read again whenever it is asked for. It is safe for concurrent use.
type fresh[T any] struct {
	read  func() (T, error)
	every time.Duration // it is not read more often than this
	now   func() time.Time

	mu      sync.Mutex
	value   T
	err     error // of the last reading
	last    time.Time
	failing time.Time // since when readings fail
}

// newFresh reads the files for the first time, and fails as that does.
func newFresh[T any](read func() (T, error), every time.Duration, now func() time.Time) (*fresh[T], error) {
	value, err := read()
	if err != nil {
		return nil, err
	}
	return &fresh[T]{read: read, every: every, now: now, value: value, last: now()}, nil
}

// get returns what the files hold, or held fileGrace ago at most before they became unreadable.
func (f *fresh[T]) get() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Sub(f.last) >= f.every {
		f.last = now
		value, err := f.read()
		switch {
		case err == nil:
			f.value = value
		case f.err == nil:
			f.failing = now
		}
		f.err = err
	}
	if f.err != nil && now.Sub(f.failing) >= fileGrace {
		var none T
		return none, f.err
	}
	return f.value, nil
}
