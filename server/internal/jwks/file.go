package jwks

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// fileKeys are an issuer's keys from a file.
type fileKeys struct {
	Issuer
	use string
	log *slog.Logger
	set atomic.Pointer[Set]

	mu      sync.Mutex
	failure error
	since   time.Time
}

var errNoUsableKey = fmt.Errorf("holds no key that can be used: RSA of %d to 4096 bits, P-256, P-384, P-521 or Ed25519, public, for signatures", minRSABits)

// openFileKeys returns an error for a file without a usable key.
func openFileKeys(issuer Issuer, use string, log *slog.Logger) (*fileKeys, error) {
	f := &fileKeys{Issuer: issuer, use: use, log: log}
	set, err := f.read()
	if err != nil {
		return nil, err
	}
	if len(set.all) == 0 {
		return nil, fmt.Errorf("%s: %w", issuer.File, errNoUsableKey)
	}
	f.set.Store(set)
	return f, nil
}

func (f *fileKeys) read() (*Set, error) {
	data, err := readBounded(f.File, maxKeySetBytes)
	if err != nil {
		return nil, err
	}
	set, err := parseKeySet(data, f.uses())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.File, err)
	}
	return set, nil
}

// reload reads the file again. A broken one leaves the keys as they are; one that is a key set is
// believed even if no key of it can be used, for a key that is removed must not live on.
func (f *fileKeys) reload(now time.Time) {
	set, err := f.read()
	if err == nil {
		f.set.Store(set)
		if len(set.all) == 0 {
			err = fmt.Errorf("%s: %w", f.File, errNoUsableKey)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil && f.failure != nil:
		f.log.Info("the keys of an issuer are read again", "of", f.use, "issuer", f.Name)
	case err != nil && (f.failure == nil || f.failure.Error() != err.Error()):
		f.log.Error("the keys of an issuer were not read", "of", f.use, "issuer", f.Name, "err", err)
		f.since = now
	}
	f.failure = err
}

func (f *fileKeys) current(time.Time) *Set { return f.set.Load() }

func (f *fileKeys) ask(time.Time) (*awaited, bool) { return nil, false }

func (f *fileKeys) problem(time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil {
		return ""
	}
	return fmt.Sprintf("keys of %s issuer %s could not be read since %s: %v", f.use, f.Name, f.since.UTC().Format(time.RFC3339), f.failure)
}

func (f *fileKeys) close() {}

// readBounded reads a file of at most limit bytes. Its errors name the path, and nothing of the content.
func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return data, nil
}
