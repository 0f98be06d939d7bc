package identity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

const rememberedTokens = 4096

// TokensConfig is what Tokens need beside the issuers.
type TokensConfig struct {
	// Log gets what becomes of keys. Nil: slog.Default().
	Log *slog.Logger
	// Metrics gets promptassembly_jwks_fetches_total, by issuer and result. Nil: none.
	Metrics prometheus.Registerer
	// Now is the clock that tokens and keys are held against. Nil: time.Now.
	Now func() time.Time
	// Transport makes the fetches of keys. Nil: one for each, over the network.
	Transport http.RoundTripper
}

// Tokens verifies JWTs: ID and access tokens, tokens of Kubernetes service accounts, JWT-SVIDs. It
// remembers up to 4,096 that held, and is safe for concurrent use.
type Tokens struct {
	now     func() time.Time
	keys    *jwks.Keys
	issuers atomic.Pointer[issuers]
	memory  *lru.Cache[[sha256.Size]byte, *remembered]

	mu     sync.Mutex // one exchange of the issuers at a time
	closed bool
}

// NewTokens returns Tokens without issuers, which believe no token. It panics if the metric is
// registered already, as prometheus.MustRegister does.
func NewTokens(cfg TokensConfig) *Tokens {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	t := &Tokens{now: cfg.Now, keys: jwks.New(jwks.Config{
		Use: "token", Log: cfg.Log, Metrics: cfg.Metrics, Now: cfg.Now, Transport: cfg.Transport,
	})}
	t.memory, _ = lru.New[[sha256.Size]byte, *remembered](rememberedTokens) // fails for no size above 0
	t.issuers.Store(newIssuers(nil))
	return t
}

// Prepare returns the change that makes these the issuers. One that is equal to one before keeps the tokens
// of it that are remembered. It waits and fails as jwks.Keys.Prepare does, and for an issuer that is wrong.
func (t *Tokens) Prepare(ctx context.Context, configured []Issuer) (jwks.Change, error) {
	before := t.issuers.Load().all
	names := map[string]bool{}
	next := make([]*issuer, 0, len(configured))
	from := make([]jwks.Issuer, 0, len(configured))
	for _, cfg := range configured {
		// A trust domain and a claim iss of one name would be one issuer in an Identity.
		if names[cfg.Name] {
			return jwks.Change{}, fmt.Errorf("token issuer %q is there twice", cfg.Name)
		}
		names[cfg.Name] = true
		i := equalIssuer(before, cfg)
		if i == nil {
			var err error
			if i, err = newIssuer(cfg); err != nil {
				return jwks.Change{}, fmt.Errorf("token issuer %q: %w", cfg.Name, err)
			}
		}
		next = append(next, i)
		from = append(from, jwks.Issuer{Name: cfg.Name, Location: cfg.Keys, SPIFFE: cfg.SPIFFE})
	}
	sources, change, err := t.keys.Prepare(ctx, from)
	if err != nil {
		return jwks.Change{}, err
	}
	for n, i := range next {
		if i.keys == nil {
			i.keys = sources[n]
		}
	}
	return jwks.Change{Discard: change.Discard, Commit: func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.closed {
			t.issuers.Store(newIssuers(next))
		}
		change.Commit()
	}}, nil
}

func equalIssuer(all []*issuer, cfg Issuer) *issuer {
	for _, i := range all {
		if reflect.DeepEqual(i.Issuer, cfg) {
			return i
		}
	}
	return nil
}

// Reload reads the files of keys again. One that cannot be read, or is not a key set, leaves the keys
// of its issuer as they are, is logged, and is among the Problems.
func (t *Tokens) Reload() { t.keys.Reload() }

// Files returns the paths of the files of keys, after a change of which Reload is to be called. The files
// of authorities and bearers are read for each fetch.
func (t *Tokens) Files() []string { return t.keys.Files() }

// Problems says in which issuers' keys there is something wrong, in the order of the configuration.
func (t *Tokens) Problems() []string { return t.keys.Problems() }

// Close ends what fetches keys, and returns once it has ended. No token is believed afterwards.
func (t *Tokens) Close() {
	t.keys.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.issuers.Store(newIssuers(nil))
	t.memory.Purge()
}
