package rpc

import (
	"sync"

	"github.com/promptassembly/promptassembly/server/internal/admission"
	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// accounts are those of the identities that have calls under way, on whatever connection.
type accounts struct {
	gates Gates
	mu    sync.Mutex
	open  map[identity.Identity]*account
}

// account is what the calls of an identity take. Their answers count for the connection, which they
// are forgotten with.
type account struct {
	inFlight, arriving *admission.Account
	calls              int
}

// enter returns the account of an identity, for a call that leaves it later.
func (a *accounts) enter(id identity.Identity) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.open[id]
	if of == nil {
		of = &account{inFlight: a.gates.InFlight.Open(), arriving: a.gates.Arriving.Open()}
		a.open[id] = of
	}
	of.calls++
	return of
}

func (a *accounts) leave(id identity.Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.open[id]
	if of.calls--; of.calls == 0 {
		delete(a.open, id)
	}
}
