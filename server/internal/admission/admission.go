// Package admission bounds the memory that calls take together, with a share for each caller.
package admission

import "sync"

// Gate bounds the bytes that are held at any time. It is safe for concurrent use.
type Gate struct {
	limit, share, most, spare int64

	mu   sync.Mutex // guards used, and the fields of every Account and Ticket
	used int64
}

// NewGate returns a gate for limit bytes, of which one caller may hold the fraction share, above 0
// and at most 1. No ticket takes more than a share.
func NewGate(limit int64, share float64) *Gate {
	g := &Gate{limit: limit, share: max(1, int64(float64(limit)*share))}
	g.most = g.share
	return g
}

// NewHoldGate returns a gate for what callers can hold for as long as they like. A ticket can take the
// whole limit, and a caller that holds nothing gets spare bytes beyond it, so that others cannot keep
// it out.
func NewHoldGate(limit int64, share float64, spare int64) *Gate {
	g := NewGate(limit, share)
	g.most = limit
	g.spare = spare
	return g
}

// Limit returns how many bytes may be held.
func (g *Gate) Limit() int64 { return g.limit }

// Used returns how many bytes are held.
func (g *Gate) Used() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

// Account is what one caller holds.
type Account struct {
	gate   *Gate
	used   int64
	closed bool
}

// Open returns an account for a caller that holds nothing yet.
func (g *Gate) Open() *Account { return &Account{gate: g} }

// Close gives back what the account holds, and whatever its tickets do later has no effect: a call
// may end after its connection, or be forgotten with it.
func (a *Account) Close() {
	a.gate.mu.Lock()
	defer a.gate.mu.Unlock()
	a.gate.used -= a.used
	a.used = 0
	a.closed = true
}

// Ticket holds bytes of an account. The zero value holds none. It is for one goroutine at a time.
type Ticket struct {
	account *Account
	held    int64
}

// Admit returns a ticket for n bytes, or false if the gate or the caller's share has no room.
func (a *Account) Admit(n int64) (Ticket, bool) {
	t := Ticket{account: a}
	admitted := t.Resize(n)
	return t, admitted
}

// Resize makes the ticket one for n bytes, or for the most that one may take, or leaves it as it is and
// returns false if there is no room. What is larger than the caller's share is admitted when the caller
// holds nothing else.
func (t *Ticket) Resize(n int64) bool {
	a := t.account
	g := a.gate
	n = min(n, g.most)
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.closed {
		return true
	}
	more, others := n-t.held, a.used-t.held
	if more > 0 && (others > 0 && others+n > g.share || g.used+more > g.limit && (others > 0 || n > g.spare)) {
		return false
	}
	t.held = n
	a.used += more
	g.used += more
	return true
}

// MoveTo makes what the ticket holds count for another account of its gate, or leaves it as it is and
// returns false if that caller's share has no room.
func (t *Ticket) MoveTo(a *Account) bool {
	g := a.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.used > 0 && a.used+t.held > g.share {
		return false
	}
	t.account.used -= t.held
	a.used += t.held
	t.account = a
	return true
}

// Release gives back what the ticket holds. A second release does nothing.
func (t *Ticket) Release() {
	if t.account != nil {
		t.Resize(0)
	}
}
