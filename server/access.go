package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"github.com/promptassembly/promptassembly/server/internal/grants"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/policy"
	"github.com/promptassembly/promptassembly/server/internal/rpc"
	"github.com/promptassembly/promptassembly/server/internal/watch"
	"github.com/promptassembly/promptassembly/server/internal/yamlfile"
)

// AccessConfig says where it is written who may call and what callers may assert.
type AccessConfig struct {
	// Policy is the path of the policy file, which 'promptd policy schema' describes. Required.
	Policy string
	// TLS secures connections, and says which client certificates are believed. The zero value means
	// plaintext: for loopback and unix sockets.
	TLS TLS
	// Logger hears of what was reloaded; nil means slog.Default().
	Logger *slog.Logger
	// Metrics counts reloads; nil means nowhere. One registerer can serve one Access.
	Metrics prometheus.Registerer
}

// TLS says how connections are secured. Every file is PEM and read again when it changes.
type TLS struct {
	// Certificate and Key are paths of the server's certificate, with its chain, and of its key.
	Certificate, Key string
	// ClientCA is the path of the authorities whose client certificates are believed. Empty: none is
	// asked for.
	ClientCA string
	// TrustDomain is whose names the certificates of ClientCA bear; required with it.
	TrustDomain string
	// ClientName is which name of a client certificate counts.
	ClientName CertificateName
	// WorkloadAPI is the address of a SPIFFE Workload API, unix:///path or tcp://ip:port, that gives all
	// of the above in their place.
	WorkloadAPI string
	// ShortestLife is the shortest life, from its beginning to its end, of a client certificate that is
	// believed. Default 1 h. Connections last for at most half of it, so that they end before their
	// certificates do, where those are renewed at half of their life.
	ShortestLife time.Duration
}

// On reports whether connections are secured.
func (t TLS) On() bool { return t.Certificate != "" || t.WorkloadAPI != "" }

// Clients reports whether client certificates are believed.
func (t TLS) Clients() bool { return t.ClientCA != "" || t.WorkloadAPI != "" }

// defaultShortestLife is TLS.ShortestLife where it is not set.
const defaultShortestLife = time.Hour

// CertificateName says which name of a client certificate counts.
type CertificateName = identity.CertificateName

// The names that can count. A certificate bears exactly one of the kind.
const (
	SPIFFEName = identity.SPIFFEName // a SPIFFE ID of the trust domain, with a path
	DNSName    = identity.DNSName
	EmailName  = identity.EmailName
)

// Access is who may call, and what callers may assert, as files and a Workload API say at any time.
// What is broken is not taken: what was in force before stays so. It is safe for concurrent use, and
// serves any number of servers.
type Access struct {
	path          string
	tls           TLS
	log           *slog.Logger
	reloads       *prometheus.CounterVec
	certificates  *identity.Certificates // nil: plaintext
	tokens        *identity.Tokens
	grants        *grants.Grants
	authenticator *identity.Authenticator
	policy        atomic.Pointer[policy.Policy]
	life          context.Context // of reloads
	end           context.CancelFunc
	watching      io.Closer // the policy file
	loaded        []byte    // the policy file that is in force; nil after one that is broken

	mu     sync.Mutex       // guards the rest
	keys   io.Closer        // watches the files of keys; nil: there are none
	broken map[string]error // by what is reloaded; nil: it is not
}

// What is reloaded, as metrics and problems name it.
const (
	reloadPolicy       = "policy"
	reloadCertificates = "certificates"
)

// OpenAccess reads what cfg names, and fails if that is broken, or leaves nobody who could be
// identified. With a Workload API it waits for a certificate, as long as ctx lasts. The caller closes the
// Access after the servers that use it.
func OpenAccess(ctx context.Context, cfg AccessConfig) (*Access, error) {
	a := &Access{path: cfg.Policy, tls: cfg.TLS, log: cfg.Logger, broken: make(map[string]error)}
	a.life, a.end = context.WithCancel(context.Background())
	if a.log == nil {
		a.log = slog.Default()
	}
	if a.tls.ShortestLife <= 0 {
		a.tls.ShortestLife = defaultShortestLife
	}
	a.tokens = identity.NewTokens(identity.TokensConfig{Log: a.log, Metrics: cfg.Metrics})
	a.grants = grants.New(grants.Config{Log: a.log, Metrics: cfg.Metrics})
	a.authenticator = identity.NewAuthenticator(a.tokens)
	a.measure(cfg.Metrics)
	if err := a.open(ctx); err != nil {
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

// measure registers metrics.
func (a *Access) measure(registerer prometheus.Registerer) {
	a.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promptassembly_access_reloads_total",
		Help: "Reloads of the policy file and of certificates, by result.",
	}, []string{"what", "result"})
	if registerer != nil {
		registerer.MustRegister(a.reloads, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "promptassembly_access_problems",
			Help: "How much of what says who may call is broken or out of reach, so that what was known before is in force.",
		}, func() float64 { return float64(len(a.Problems())) }))
	}
}

func (a *Access) open(ctx context.Context) (err error) {
	failed := func(err error) { _ = a.reloaded(reloadCertificates, err) } // which has logged it
	switch {
	case a.tls.WorkloadAPI != "":
		a.certificates, err = identity.OpenWorkload(ctx, identity.WorkloadConfig{
			Address: a.tls.WorkloadAPI, ShortestLife: a.tls.ShortestLife, Log: a.log, Failed: failed,
		})
	case a.tls.Certificate != "":
		a.certificates, err = identity.OpenFiles(identity.FileConfig{
			Certificate: a.tls.Certificate, Key: a.tls.Key, ClientCA: a.tls.ClientCA, TrustDomain: a.tls.TrustDomain,
			Name: a.tls.ClientName, ShortestLife: a.tls.ShortestLife, Log: a.log, Failed: failed,
		})
	}
	if err != nil {
		return err
	}
	data, err := yamlfile.Read(a.path)
	if err == nil {
		err = a.load(ctx, data)
	}
	if err != nil {
		return err
	}
	a.loaded = data
	a.watching, err = watch.Files([]string{a.path}, a.log, func() { a.reload(a.life) })
	return err
}

// errNobody is why nobody could be identified.
var errNobody = errors.New("nobody could be identified: it has no issuers and no proxies, and no client certificates are believed")

// load puts a policy file into force.
func (a *Access) load(ctx context.Context, data []byte) error {
	p, err := policy.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	if len(p.Issuers()) == 0 && len(p.Proxies()) == 0 && !a.tls.Clients() {
		return fmt.Errorf("%s: %w", a.path, errNobody)
	}
	tokens, err := a.tokens.Prepare(ctx, p.Issuers())
	if err != nil {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	grants, err := a.grants.Prepare(ctx, p.Grants())
	if err != nil {
		tokens.Discard()
		return fmt.Errorf("%s: %w", a.path, err)
	}
	tokens.Commit()
	grants.Commit()
	a.policy.Store(p)
	a.authenticator.Configure(p.Proxies(), len(p.Issuers()) > 0)
	return a.watchKeys()
}

// watchKeys watches the files of keys that the policy names.
func (a *Access) watchKeys() error {
	a.mu.Lock()
	before := a.keys
	a.keys = nil
	a.mu.Unlock()
	if before != nil {
		_ = before.Close() // without the lock, which its reload may take
	}
	files := append(a.tokens.Files(), a.grants.Keys().Files()...)
	if len(files) == 0 {
		return nil
	}
	keys, err := watch.Files(files, a.log, a.reloadKeys)
	if err != nil {
		return err
	}
	a.reloadKeys() // what changed while nobody watched, or was not told yet
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = keys
	return nil
}

func (a *Access) reloadKeys() {
	a.tokens.Reload()
	a.grants.Keys().Reload()
}

// reload puts the policy file into force if it changed and is right. One that was broken is tried again:
// it may be what it names that was.
func (a *Access) reload(ctx context.Context) {
	data, err := yamlfile.Read(a.path)
	if err == nil && a.loaded != nil && bytes.Equal(data, a.loaded) {
		return
	}
	a.loaded = nil
	if err == nil {
		err = a.load(ctx, data)
	}
	if err == nil {
		a.loaded = data
	}
	before := a.reloaded(reloadPolicy, err)
	switch {
	case err == nil:
		a.log.Info("policy reloaded")
	case before == nil || before.Error() != err.Error():
		a.log.Error("the new policy is not used; the one before stays in force", "error", err)
	}
}

// reloaded counts a reload, and remembers what is broken. It returns what was before.
func (a *Access) reloaded(what string, err error) (before error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	a.reloads.WithLabelValues(what, result).Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	before = a.broken[what]
	a.broken[what] = err
	return before
}

// Problems says, in a line each, what of it is broken or out of reach, so that what was known before is in
// force. They hold names of files, hosts and issuers.
func (a *Access) Problems() []string {
	a.mu.Lock()
	var problems []string
	for what, err := range a.broken {
		if err == nil {
			continue
		}
		problems = append(problems, what+": "+err.Error())
	}
	a.mu.Unlock()
	slices.Sort(problems)
	return append(append(problems, a.tokens.Problems()...), a.grants.Keys().Problems()...)
}

// Close ends the watching of files and the fetching of keys.
func (a *Access) Close() error {
	a.end()
	if a.watching != nil {
		_ = a.watching.Close()
	}
	a.mu.Lock()
	keys := a.keys
	a.keys = nil
	a.mu.Unlock()
	if keys != nil {
		_ = keys.Close()
	}
	a.tokens.Close()
	a.grants.Keys().Close()
	if a.certificates == nil {
		return nil
	}
	return a.certificates.Close()
}

// credentials returns how connections are secured.
func (a *Access) credentials() credentials.TransportCredentials {
	if a.certificates == nil {
		return identity.NewPlaintext()
	}
	return identity.NewTLS(a.certificates)
}

// bound returns the limits with connections that end before the certificates they were made with.
func (a *Access) bound(l Limits) Limits {
	if !a.tls.Clients() {
		return l
	}
	return l.within(a.tls.ShortestLife / 2)
}

// forCalls returns what calls are checked with; nil if a is.
func (a *Access) forCalls() *rpc.Access {
	if a == nil {
		return nil
	}
	return &rpc.Access{Authenticator: a.authenticator, Policy: a.policy.Load, Grants: a.grants}
}
