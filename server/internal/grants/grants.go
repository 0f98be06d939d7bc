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

// Prepare returns the change that makes these the issuers. It waits and fails as jwks.Keys.Prepare does.
func (g *Grants) Prepare(ctx context.Context, issuers []Issuer) (jwks.Change, error) {
	from := make([]jwks.Issuer, len(issuers))
	for n, i := range issuers {
		from[n] = jwks.Issuer{Name: i.Name, Location: i.Keys}
	}
	sources, change, err := g.keys.Prepare(ctx, from)
	if err != nil {
		return jwks.Change{}, err
	}
	next := make(map[string]*issuer, len(issuers))
	for n, i := range issuers {
		next[i.Name] = &issuer{i.Audiences, sources[n]}
	}
	return jwks.Change{Discard: change.Discard, Commit: func() {
		g.issuers.Store(&next)
		change.Commit()
	}}, nil
}

// Keys returns the keys of the issuers.
func (g *Grants) Keys() *jwks.Keys { return g.keys }

// Carried is a grant as a request carries it.
type Carried struct {
	Token []byte
	// Plan: it was carried to PlanPrompt, else to SelectMemory.
	Plan bool
	// QueryID is that of the request.
	QueryID string
	// MayAsk says whether the call may ask for keys of the issuer that are not known.
	MayAsk func(issuer string) bool
	// BeforeWait is called once before the call waits for them, and says whether it may.
	BeforeWait func() bool
}

// Verify returns the name of the issuer and what it grants, if all but the relay holds; with an error, too,
// once it is known by the signature. An error is a *grant.InvalidError, or that of ctx. It waits as
// jwks.Source.Await does.
func (g *Grants) Verify(ctx context.Context, c Carried) (name string, contents *grant.Contents, err error) {
	signed, err := grant.Parse(c.Token)
	if err != nil {
		return "", nil, err
	}
	i := (*g.issuers.Load())[signed.Issuer]
	if i == nil {
		return "", nil, &grant.InvalidError{Check: grant.Key}
	}
	find := func(s *jwks.Set) (*jwks.Key, error) { return s.Sole(signed.KeyID) }
	key, err := find(i.keys.Current())
	if err != nil && c.MayAsk(signed.Issuer) {
		key, err = i.keys.Await(ctx, find, c.BeforeWait)
	}
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
	contents, err = grant.Open(payload)
	if err == nil && contents.Plan != c.Plan {
		err = &grant.InvalidError{Check: grant.Payload}
	}
	if err == nil {
		err = contents.Holds(i.audiences, g.now(), c.QueryID)
	}
	return signed.Issuer, contents, err
}
