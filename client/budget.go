package client

import (
	"sync"
	"time"
)

// How many repeats there are in store, and how they come back.
const (
	budgetSize      = 500
	budgetPerSecond = 10
	budgetPerAnswer = 0.2
)

// budget holds the repeats that all calls of a client share. It is large enough for every call that
// a server had open when it died, and far too small for repeating all calls to a service that is
// gone.
type budget struct {
	mu     sync.Mutex
	store  float64
	filled time.Time
}

func newBudget() *budget { return &budget{store: budgetSize, filled: time.Now()} }

// answered puts back what an answered call earns.
func (b *budget) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.store = min(budgetSize, b.store+budgetPerAnswer)
}

// take takes one repeat and reports whether there was one.
func (b *budget) take() bool {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.store = min(budgetSize, b.store+now.Sub(b.filled).Seconds()*budgetPerSecond)
	b.filled = now
	if b.store < 1 {
		return false
	}
	b.store--
	return true
}
