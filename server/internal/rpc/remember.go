package rpc

import (
	"context"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// remembering returns the counter with what it remembers for who calls, and for a user scope where
// there is one: what it counts of memories is the scope's, what it counts of segments the caller's.
func (s *Service) remembering(ctx context.Context, counter tokens.Counter, scope ...string) tokens.Counter {
	var who identity.Identity
	if caller := identified(ctx); caller != nil {
		who = caller.Identity
	}
	return s.cache.For(counter, append([]string{string(who.Source), who.Issuer, who.Name}, scope...)...)
}
