package jwks

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	fetchInterval = 5 * time.Minute
	fetchRetry    = 10 * time.Second // after a failure
	askInterval   = 10 * time.Second // between fetches that unknown keys ask for
	fetchTimeout  = 10 * time.Second
	keysLife      = time.Hour   // without a fetch that succeeds
	logInterval   = time.Minute // between log lines while fetches fail

	// mostWaiting is how many calls may wait for one fetch: a burst of callers with a new key, and no
	// more of a flood with unknown ones.
	mostWaiting = 64
)

// urlKeys are an issuer's keys from a URL. One goroutine fetches them.
type urlKeys struct {
	Issuer
	use       string
	source    endpoint
	log       *slog.Logger
	now       func() time.Time
	succeeded prometheus.Counter
	failed    prometheus.Counter

	set    atomic.Pointer[fetchedKeys]
	wake   chan struct{} // holds one
	first  chan struct{} // closed after the first fetch
	done   chan struct{} // closed when the goroutine has ended
	cancel context.CancelFunc

	mu      sync.Mutex
	flight  *awaited // nil: no fetch is under way or due
	ended   bool
	asked   time.Time
	failure string // of the last fetch; empty: none
	since   time.Time
	logged  time.Time
}

type fetchedKeys struct {
	*Set
	at time.Time // when the fetch began
}

// awaited is a fetch that calls wait for.
type awaited struct {
	done  chan struct{}
	slots chan struct{}
}

// wait waits for the fetch, for at most d.
func (a *awaited) wait(ctx context.Context, d time.Duration) {
	defer a.leave()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// leave gives up the place among those that wait.
func (a *awaited) leave() { <-a.slots }

// start begins to fetch, until close or until ctx is done.
func (u *urlKeys) start(ctx context.Context) {
	ctx, u.cancel = context.WithCancel(ctx)
	u.wake = make(chan struct{}, 1)
	u.first = make(chan struct{})
	u.done = make(chan struct{})
	go u.run(ctx)
}

func (u *urlKeys) run(ctx context.Context) {
	defer close(u.done)
	defer u.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-u.wake:
		}
		pause := fetchInterval
		if !u.fetch(ctx) {
			pause = fetchRetry
		}
		timer.Reset(pause)
		if first {
			close(u.first)
		}
	}
}

// fetch makes one fetch, which is that of all who wait.
func (u *urlKeys) fetch(ctx context.Context) bool {
	u.mu.Lock()
	select {
	case <-u.wake: // this is the fetch that was asked for
	default:
	}
	if u.flight == nil {
		u.flight = newAwaited()
	}
	flight := u.flight
	u.mu.Unlock()

	began := u.now()
	timely, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	data, err := u.source.fetch(timely)
	var set *Set
	if err == nil {
		set, err = parseKeySet(data, u.uses())
	}
	if err == nil {
		u.set.Store(&fetchedKeys{set, began})
	}

	u.mu.Lock()
	defer u.mu.Unlock()
	u.flight = nil
	close(flight.done)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		u.fail(err.Error())
		return false
	}
	u.succeeded.Inc()
	if u.failure != "" {
		u.log.Info("the keys of an issuer are fetched again", "of", u.use, "issuer", u.Name)
		u.failure = ""
	}
	return true
}

// end lets those go who wait for a fetch that will not be.
func (u *urlKeys) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if u.flight != nil {
		close(u.flight.done)
		u.flight = nil
	}
}

func newAwaited() *awaited {
	return &awaited{done: make(chan struct{}), slots: make(chan struct{}, mostWaiting)}
}

// fail notes that a fetch failed. The mutex is held.
func (u *urlKeys) fail(reason string) {
	u.failed.Inc()
	now := u.now()
	if u.failure == "" {
		u.since = now
	}
	if u.failure == "" || now.Sub(u.logged) >= logInterval {
		u.logged = now
		u.log.Error("the keys of an issuer could not be fetched", "of", u.use, "issuer", u.Name, "err", reason, "since", u.since)
	}
	u.failure = reason
}

func (u *urlKeys) current(now time.Time) *Set {
	if f := u.set.Load(); f != nil && now.Sub(f.at) <= keysLife {
		return f.Set
	}
	return nil
}

// ask returns the fetch that is under way, or a new one if none was asked for in the last 10 s, or false:
// then, or if enough calls wait already, the caller is refused without one.
func (u *urlKeys) ask(now time.Time) (*awaited, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.flight == nil {
		if u.ended || !u.asked.IsZero() && now.Sub(u.asked) < askInterval {
			return nil, false
		}
		u.asked = now
		u.flight = newAwaited()
		u.wake <- struct{}{} // there is room: the mutex is held, and no flight was due
	}
	select {
	case u.flight.slots <- struct{}{}:
		return u.flight, true
	default:
		return nil, false
	}
}

func (u *urlKeys) problem(now time.Time) string {
	set := u.set.Load()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.failure == "" && set != nil && len(set.all) == 0:
		return fmt.Sprintf("keys of %s issuer %s: %s %v", u.use, u.Name, u.source.url, errNoUsableKey)
	case u.failure == "":
		return ""
	}
	unused := ""
	if set == nil || now.Sub(set.at) > keysLife {
		unused = "; its tokens are refused"
	}
	return fmt.Sprintf("keys of %s issuer %s could not be fetched since %s: %s%s",
		u.use, u.Name, u.since.UTC().Format(time.RFC3339), u.failure, unused)
}

// close ends the goroutine, and returns once it has ended.
func (u *urlKeys) close() {
	u.cancel()
	<-u.done
}
