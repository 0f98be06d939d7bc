// Package grants holds whose signed grants are believed, and verifies them.
package grants

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promptassembly/promptassembly/server/grant"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

// Issuer is who signs grants that are believed.
type Issuer struct {
	// Name is the header parameter iss, compared byte for byte.
	Name string
	// Keys is where its JSON Web Key Set is.
	Keys jwks.Location
	// Audiences are the values of a grant's audience of which it has one; at least one.
	Audiences []string
}

// Config is what Grants need beside the issuers.
type Config struct {
	// Log gets what becomes of keys.
	Log *slog.Logger
	// Metrics gets promptassembly_jwks_fetches_total, by issuer and result. Nil: none.
	Metrics prometheus.Registerer
	// Now is the clock that grants and keys are held against. Nil: time.Now.
	Now func() time.Time
}

// Grants verifies signed grants. It is safe for concurrent use.
type Grants struct {
	now     func() time.Time
	keys    *jwks.Keys
	issuers atomic.Pointer[map[string]*issuer]
}

// issuer is an Issuer in force.
type issuer struct {
	audiences []string
	keys      *jwks.Source
}

// New returns Grants without issuers, which believe no grant. It panics if the metric is registered
// already, as prometheus.MustRegister does.
func New(cfg Config) *Grants {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	g := &Grants{now: cfg.Now, keys: jwks.New(jwks.Config{Use: "grant", Log: cfg.Log, Metrics: cfg.Metrics, Now: cfg.Now})}
	g.issuers.Store(new(map[string]*issuer))
	return g
}

// Configure replaces the issuers, whose names differ, as jwks.Keys.Configure does.
func (g *Grants) Configure(ctx context.Context, issuers []Issuer) error {
	from := make([]jwks.Issuer, len(issuers))
	for n, i := range issuers {
		from[n] = jwks.Issuer{Name: i.Name, Location: i.Keys}
	}
	sources, err := g.keys.Configure(ctx, from)
	if err != nil {
		return err
	}
	next := make(map[string]*issuer, len(issuers))
	for n, i := range issuers {
		next[i.Name] = &issuer{i.Audiences, sources[n]}
	}
	g.issuers.Store(&next)
	return nil
}

// Keys returns the keys of the issuers.
func (g *Grants) Keys() *jwks.Keys { return g.keys }

// Verify returns the name of the issuer and what it grants, if all but the relay holds of the grant that is
// carried by a request with that query id. An error is a *grant.InvalidError, or that of ctx. It waits as
// jwks.Source.Await does.
func (g *Grants) Verify(ctx context.Context, token []byte, plan bool, queryID string) (string, *grant.Contents, error) {
	signed, err := grant.Parse(token)
	if err != nil {
		return "", nil, err
	}
	i := (*g.issuers.Load())[signed.Issuer]
	if i == nil {
		return "", nil, &grant.InvalidError{Check: grant.Key}
	}
	key, err := i.keys.Await(ctx, func(s *jwks.Set) (*jwks.Key, error) { return s.Sole(signed.KeyID) }, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", nil, ctx.Err()
	case err != nil:
		return "", nil, &grant.InvalidError{Check: grant.Key}
	case !key.Fits(signed.Algorithm):
		return "", nil, &grant.InvalidError{Check: grant.Algorithm}
	}
	payload, err := signed.Verify(key.Public)
	if err != nil {
		return "", nil, err
	}
	contents, err := grant.Open(payload)
	if err == nil && contents.Plan != plan {
		err = &grant.InvalidError{Check: grant.Payload}
	}
	if err == nil {
		err = contents.Holds(i.audiences, g.now(), queryID)
	}
	if err != nil {
		return "", nil, err
	}
	return signed.Issuer, contents, nil
}
