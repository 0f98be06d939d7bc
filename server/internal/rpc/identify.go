package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/promptassembly/promptassembly/server/internal/grants"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/observe"
	"github.com/promptassembly/promptassembly/server/internal/policy"
)

// Access is who may call, and what callers may assert.
type Access struct {
	Authenticator *identity.Authenticator
	// Policy is what is in force.
	Policy func() *policy.Policy
	Grants *grants.Grants
}

type identifiedKey struct{}

type policyKey struct{}

// policyOf returns the policy that the call is judged by, from its beginning to its end; nil where the server
// trusts every caller.
func policyOf(ctx context.Context) *policy.Policy {
	p, _ := ctx.Value(policyKey{}).(*policy.Policy)
	return p
}

// identified returns who calls; nil means that the server trusts every caller.
func identified(ctx context.Context) *identity.Caller {
	caller, _ := ctx.Value(identifiedKey{}).(*identity.Caller)
	return caller
}

// identify finds out who calls, and returns a context that says so. Nothing of the request has been
// asked for by then. A call that has to wait for an issuer's keys holds no room meanwhile.
func (s *Service) identify(ctx context.Context) (context.Context, error) {
	if s.access == nil {
		return ctx, nil
	}
	call := observe.From(ctx)
	conn := new(identity.Peer)
	if p, ok := peer.FromContext(ctx); ok {
		if verified, ok := p.AuthInfo.(*identity.Peer); ok {
			conn = verified
		}
	}
	header, _ := metadata.FromIncomingContext(ctx)
	caller, err := s.access.Authenticator.Authenticate(ctx, conn, header, arrivalOf(ctx).room.Release)
	connection := arrivalOf(ctx).caller
	connection.identified.Store(err == nil)
	invalid, ok := errors.AsType[*identity.InvalidError](err)
	switch {
	case ok:
		call.Unidentified(string(invalid.Source), invalid.Check)
		return nil, errIdentityInvalid
	case errors.Is(err, identity.ErrMissing):
		return nil, errIdentityMissing
	case ctx.Err() != nil:
		return nil, ended(ctx)
	case err != nil:
		return nil, errInternal
	}
	connection.introduce()
	call.Identity(caller.Identity)
	ctx = context.WithValue(ctx, policyKey{}, s.access.Policy())
	return context.WithValue(ctx, identifiedKey{}, caller), nil
}
