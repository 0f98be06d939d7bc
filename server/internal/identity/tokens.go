package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	firstKeysWait    = 10 * time.Second // for the first fetch of a new issuer's keys
	rememberedTokens = 4096
)

// TokensConfig is what Tokens need beside the issuers.
type TokensConfig struct {
	// Log gets what becomes of keys. Nil: slog.Default().
	Log *slog.Logger
	// Metrics gets promptassembly_jwks_fetches_total, by issuer and result. Nil: none.
	Metrics prometheus.Registerer
	// Now is the clock that tokens and keys are held against. Nil: time.Now.
	Now func() time.Time
}

// Tokens verifies JWTs: ID and access tokens, tokens of Kubernetes service accounts, JWT-SVIDs. It
// remembers up to 4,096 that held, and is safe for concurrent use.
type Tokens struct {
	log       *slog.Logger
	now       func() time.Time
	fetches   *prometheus.CounterVec
	transport http.RoundTripper // for fetches; nil: the network
	issuers   atomic.Pointer[issuers]
	memory    *lru.Cache[[sha256.Size]byte, *remembered]

	mu    sync.Mutex      // one Configure, Reload or Close at a time
	life  context.Context // done once closed
	close context.CancelFunc
}

// NewTokens returns Tokens without issuers, which believe no token. It panics if the metric is
// registered already, as prometheus.MustRegister does.
func NewTokens(cfg TokensConfig) *Tokens {
	t := &Tokens{
		log: cfg.Log,
		now: cfg.Now,
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "promptassembly_jwks_fetches_total",
			Help: "Fetches of the keys of token issuers, by result: ok or failed.",
		}, []string{"issuer", "result"}),
	}
	t.life, t.close = context.WithCancel(context.Background())
	if t.log == nil {
		t.log = slog.Default()
	}
	if t.now == nil {
		t.now = time.Now
	}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(t.fetches)
	}
	t.memory, _ = lru.New[[sha256.Size]byte, *remembered](rememberedTokens) // fails for no size above 0
	t.issuers.Store(newIssuers(nil))
	return t
}

// Configure replaces the issuers. One that is equal to one before keeps its keys, and the tokens of it
// that are remembered. It waits up to 10 s, or until ctx is done, for the first keys of new URLs; if they
// do not come, that is logged, and tried again every 10 s. An error, as for a file without keys, leaves
// everything as it was.
func (t *Tokens) Configure(ctx context.Context, configured []Issuer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() != nil {
		return errors.New("closed")
	}
	before := t.issuers.Load().all
	next, err := t.prepare(configured, before)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, firstKeysWait)
	defer cancel()
	var fetching []*urlKeys
	for _, i := range next {
		if i.keys == nil {
			u := t.newURLKeys(i)
			i.keys = u
			u.start(t.life)
			fetching = append(fetching, u)
		}
	}
	for _, u := range fetching {
		select {
		case <-u.first:
		case <-ctx.Done():
		case <-t.life.Done():
		}
	}
	t.issuers.Store(newIssuers(next))
	t.retire(before, next)
	return nil
}

// prepare returns the issuers, with those of before that are equal. New ones have no keys yet if they
// come from a URL.
func (t *Tokens) prepare(configured []Issuer, before []*issuer) ([]*issuer, error) {
	names := map[string]bool{}
	next := make([]*issuer, 0, len(configured))
	for _, cfg := range configured {
		// A trust domain and a claim iss of one name would be one issuer in an Identity.
		if names[cfg.Name] {
			return nil, fmt.Errorf("token issuer %q is there twice", cfg.Name)
		}
		names[cfg.Name] = true
		if i := equalIssuer(before, cfg); i != nil {
			next = append(next, i)
			continue
		}
		i, err := newIssuer(cfg)
		if err == nil && cfg.KeysFile != "" {
			i.keys, err = openFileKeys(cfg.Name, cfg.KeysFile, i.keyUses(), t.log)
		}
		if err != nil {
			return nil, fmt.Errorf("token issuer %q: %w", cfg.Name, err)
		}
		next = append(next, i)
	}
	return next, nil
}

func equalIssuer(all []*issuer, cfg Issuer) *issuer {
	for _, i := range all {
		if reflect.DeepEqual(i.Issuer, cfg) {
			return i
		}
	}
	return nil
}

func (t *Tokens) newURLKeys(i *issuer) *urlKeys {
	return &urlKeys{
		issuer: i.Name,
		source: keysEndpoint{url: i.KeysURL, caFile: i.CAFile, bearerFile: i.BearerFile, transport: t.transport},
		uses:   i.keyUses(), log: t.log, now: t.now,
		succeeded: t.fetches.WithLabelValues(i.Name, "ok"),
		failed:    t.fetches.WithLabelValues(i.Name, "failed"),
	}
}

// retire ends the issuers of before that are not in next.
func (t *Tokens) retire(before, next []*issuer) {
	kept := map[*issuer]bool{}
	fetched := map[string]bool{}
	for _, i := range next {
		kept[i] = true
		fetched[i.Name] = fetched[i.Name] || i.KeysURL != ""
	}
	for _, i := range before {
		if kept[i] {
			continue
		}
		i.keys.close()
		if !fetched[i.Name] {
			t.fetches.DeletePartialMatch(prometheus.Labels{"issuer": i.Name})
		}
	}
}

// Reload reads the files of keys again. One that cannot be read, or is not a key set, leaves the keys
// of its issuer as they are, is logged, and is among the Problems.
func (t *Tokens) Reload() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.issuers.Load().all {
		if f, ok := i.keys.(*fileKeys); ok {
			f.reload(t.now())
		}
	}
}

// Files returns the paths of the files of keys, after a change of which Reload is to be called. The files
// of authorities and bearers are read for each fetch.
func (t *Tokens) Files() []string {
	var paths []string
	for _, i := range t.issuers.Load().all {
		if i.KeysFile != "" {
			paths = append(paths, i.KeysFile)
		}
	}
	return paths
}

// Problems says in which issuers' keys there is something wrong, in the order of the configuration.
func (t *Tokens) Problems() []string {
	var problems []string
	for _, i := range t.issuers.Load().all {
		if p := i.keys.problem(t.now()); p != "" {
			problems = append(problems, p)
		}
	}
	return problems
}

// Close ends what fetches keys, and returns once it has ended. No token is believed afterwards.
func (t *Tokens) Close() {
	t.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.issuers.Load().all
	t.issuers.Store(newIssuers(nil))
	t.retire(before, nil)
	t.memory.Purge()
}
