package jwks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Issuer says where the keys of one who signs are.
type Issuer struct {
	// Name is what problems and metrics call the issuer.
	Name string
	Location
	// SPIFFE: the set is a bundle, which says which of its keys are for tokens.
	SPIFFE bool
}

// Location is where a key set is.
type Location struct {
	// File or URL is where it is; exactly one is set. A URL is https, or http on loopback.
	File, URL string
	// CAFile holds the authorities, in PEM, that vouch for the host of URL. Empty: the system's.
	CAFile string
	// BearerFile holds a token that is sent with each fetch of URL. Empty: none.
	BearerFile string
}

// Check returns what is wrong, or nil. It looks at no file.
func (l Location) Check() error {
	switch {
	case (l.File == "") == (l.URL == ""):
		return errors.New("keys must come from a file or from a URL, one of them")
	case l.URL == "" && (l.CAFile != "" || l.BearerFile != ""):
		return errors.New("a file of authorities and a bearer file are for keys from a URL")
	case l.URL == "":
		return nil
	}
	if err := checkURL(l.URL); err != nil {
		return fmt.Errorf("the URL of the keys is %w", err)
	}
	if l.CAFile != "" && !strings.HasPrefix(l.URL, "https:") {
		return errors.New("a file of authorities is for an https URL")
	}
	return nil
}

// uses are what the use of a key may be.
func (i Issuer) uses() []string {
	if i.SPIFFE {
		return []string{"sig", "jwt-svid"}
	}
	return []string{"sig"}
}

// Config is what Keys need beside the issuers.
type Config struct {
	// Use is a word for what the issuers sign: it goes before "issuer".
	Use string
	// Log gets what becomes of keys.
	Log *slog.Logger
	// Metrics gets promptassembly_jwks_fetches_total, by issuer and result. Nil: none.
	Metrics prometheus.Registerer
	// Now is the clock that keys are held against.
	Now func() time.Time
	// Transport makes the fetches. Nil: one for each, over the network.
	Transport http.RoundTripper
}

// Keys are the keys of issuers. They are safe for concurrent use.
type Keys struct {
	Config
	fetches *prometheus.CounterVec

	sources atomic.Pointer[[]*Source]
	life    context.Context // done once closed
	close   context.CancelFunc
	mu      sync.Mutex // one exchange of the sources at a time
}

// New returns Keys without issuers. It panics if the metric of that use is registered already, as
// prometheus.MustRegister does.
func New(cfg Config) *Keys {
	k := &Keys{Config: cfg, fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "promptassembly_jwks_fetches_total",
		Help:        "Fetches of issuers' keys, by result: ok or failed.",
		ConstLabels: prometheus.Labels{"of": cfg.Use},
	}, []string{"issuer", "result"})}
	k.life, k.close = context.WithCancel(context.Background())
	k.sources.Store(new([]*Source))
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(k.fetches)
	}
	return k
}

// firstKeysWait is how long the first fetch of a new issuer's keys is waited for.
const firstKeysWait = 10 * time.Second

// Change is what has been prepared. One of its functions is called, once.
type Change struct {
	// Commit puts it into force.
	Commit func()
	// Discard ends what it has begun, and leaves everything as it was.
	Discard func()
}

// Prepare returns the keys of issuers, whose names differ and whose locations are right, and the change that
// makes them those in force. An issuer that is equal to one in force keeps its keys. It waits up to 10 s, or
// until ctx is done, for the first keys of new URLs; if they do not come, that is logged, and tried again
// every 10 s. It fails for a file without keys, and once closed. One change is prepared at a time.
func (k *Keys) Prepare(ctx context.Context, issuers []Issuer) ([]*Source, Change, error) {
	if k.life.Err() != nil {
		return nil, Change{}, errors.New("closed")
	}
	before := make(map[Issuer]*Source)
	for _, s := range *k.sources.Load() {
		before[s.Issuer] = s
	}
	next, err := k.prepare(issuers, before)
	if err != nil {
		return nil, Change{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, firstKeysWait)
	defer cancel()
	var fetching []*urlKeys
	for _, s := range next {
		if s.keys == nil {
			u := k.fetched(s.Issuer)
			s.keys = u
			u.start(k.life)
			fetching = append(fetching, u)
		}
	}
	for _, u := range fetching {
		select {
		case <-u.first:
		case <-ctx.Done():
		case <-k.life.Done():
		}
	}
	return next, Change{Commit: func() { k.replace(next) }, Discard: func() {
		for _, u := range fetching {
			u.close()
		}
	}}, nil
}

// prepare returns the sources, with those of before that are equal. New ones have no keys yet if they
// come from a URL.
func (k *Keys) prepare(issuers []Issuer, before map[Issuer]*Source) ([]*Source, error) {
	next := make([]*Source, 0, len(issuers))
	for _, issuer := range issuers {
		s := before[issuer]
		if s == nil {
			s = &Source{Issuer: issuer, now: k.Now}
			if issuer.File != "" {
				keys, err := openFileKeys(issuer, k.Use, k.Log)
				if err != nil {
					return nil, fmt.Errorf("%s issuer %q: %w", k.Use, issuer.Name, err)
				}
				s.keys = keys
			}
		}
		next = append(next, s)
	}
	return next, nil
}

func (k *Keys) fetched(issuer Issuer) *urlKeys {
	return &urlKeys{
		Issuer: issuer, use: k.Use,
		source: endpoint{url: issuer.URL, caFile: issuer.CAFile, bearerFile: issuer.BearerFile, transport: k.Transport},
		log:    k.Log, now: k.Now,
		succeeded: k.fetches.WithLabelValues(issuer.Name, "ok"),
		failed:    k.fetches.WithLabelValues(issuer.Name, "failed"),
	}
}

// replace ends the sources that are not in next.
func (k *Keys) replace(next []*Source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Err() != nil {
		next = nil
	}
	kept := make(map[*Source]bool, len(next))
	fetched := make(map[string]bool, len(next))
	for _, s := range next {
		kept[s] = true
		fetched[s.Name] = s.URL != ""
	}
	for _, s := range *k.sources.Swap(&next) {
		if kept[s] {
			continue
		}
		s.keys.close()
		if !fetched[s.Name] {
			k.fetches.DeletePartialMatch(prometheus.Labels{"issuer": s.Name})
		}
	}
}

// Reload reads the files of keys again. One that cannot be read, or is not a key set, leaves the keys
// of its issuer as they are, is logged, and is among the Problems.
func (k *Keys) Reload() {
	for _, s := range *k.sources.Load() {
		if f, ok := s.keys.(*fileKeys); ok {
			f.reload(k.Now())
		}
	}
}

// Files returns the paths of the files of keys, after a change of which Reload is to be called. The files
// of authorities and bearers are read for each fetch.
func (k *Keys) Files() []string {
	var paths []string
	for _, s := range *k.sources.Load() {
		if s.File != "" {
			paths = append(paths, s.File)
		}
	}
	return paths
}

// Problems says in which issuers' keys there is something wrong, in the order of the configuration.
func (k *Keys) Problems() []string {
	var problems []string
	for _, s := range *k.sources.Load() {
		if p := s.keys.problem(k.Now()); p != "" {
			problems = append(problems, p)
		}
	}
	return problems
}

// Close ends what fetches keys, and returns once it has ended.
func (k *Keys) Close() {
	k.close()
	k.replace(nil)
}
