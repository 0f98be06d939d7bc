package jwks

import (
	"context"
	"errors"
	"time"
)

// Source is the keys of one issuer.
type Source struct {
	Issuer
	now  func() time.Time
	keys keySource
}

// keySource is where the keys of an issuer come from.
type keySource interface {
	// current returns the keys in force; nil: there are none.
	current(now time.Time) *Set
	// ask returns a fetch that may bring a key that is unknown, or false.
	ask(now time.Time) (*awaited, bool)
	// problem says what is wrong; empty: nothing.
	problem(now time.Time) string
	close()
}

// Current returns the keys in force, nil if there are none.
func (s *Source) Current() *Set { return s.keys.current(s.now()) }

// askedKeysWait is how long a call waits for the keys that it asked for.
const askedKeysWait = 5 * time.Second

// Await returns the key that find finds. Only a call with a key that its issuer's URL did not hold waits,
// for at most 5 s: if nobody asked for that in the last 10 s, or with the few that ask at the same time.
// beforeWait is called once before it, and says whether it may wait.
func (s *Source) Await(ctx context.Context, find func(*Set) (*Key, error), beforeWait func() bool) (*Key, error) {
	k, err := find(s.Current())
	if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrNone) {
		return k, err
	}
	fetch, ok := s.keys.ask(s.now())
	if !ok {
		return nil, err
	}
	if !beforeWait() {
		fetch.leave()
		return nil, err
	}
	fetch.wait(ctx, askedKeysWait)
	return find(s.Current())
}
