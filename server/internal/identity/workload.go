package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spiffe/go-spiffe/v2/workloadapi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// WorkloadConfig says where the SPIFFE Workload API is.
type WorkloadConfig struct {
	// Address is unix:///path/of/socket or tcp://ip:port.
	Address string
	// ShortestLife is the shortest life, from beginning to end, of a client certificate that is accepted.
	// 0: DefaultShortestLife.
	ShortestLife time.Duration
	// Log is told of each rotation. Nil: slog.Default().
	Log *slog.Logger
	// Failed is told what became of asking for certificates: an error when it begins to fail or fails for
	// another reason, and nil with each new set. It is called by one goroutine at a time and must not call
	// Close. It can be nil.
	Failed func(error)
}

const (
	shortestPause = time.Second
	longestPause  = 5 * time.Second
)

// OpenWorkload returns the certificates that the Workload API gives, the first of several, and keeps
// them as it rotates them; when it is away, they stay in force, and it is asked again at least every
// 5 s or so. Clients are asked for certificates, and each trust domain that the Workload API knows,
// federated ones as well, vouches for its own SPIFFE IDs. It waits for the first certificate until ctx is
// done; ctx bounds nothing else. The caller closes it.
func OpenWorkload(ctx context.Context, cfg WorkloadConfig) (*Certificates, error) {
	life, cancel := context.WithCancel(context.Background())
	client, err := workloadapi.New(life,
		workloadapi.WithAddr(cfg.Address),
		workloadapi.WithBackoffStrategy(pauses{}),
		workloadapi.WithDialOptions(grpc.WithNoProxy(), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: shortestPause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longestPause},
			MinConnectTimeout: longestPause,
		})),
	)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("workload API %q: %w", cfg.Address, err)
	}
	w := &workload{
		shortestLife: lifeOrDefault(cfg.ShortestLife),
		certificates: &Certificates{asks: true},
		reloads:      newReloads(cfg.Log, cfg.Failed),
		life:         life,
		first:        make(chan struct{}),
	}
	var running sync.WaitGroup
	running.Go(func() { w.watch(client) })
	w.certificates.close = func() error {
		cancel()
		running.Wait()
		return client.Close()
	}
	select {
	case <-w.first:
		return w.certificates, nil
	case <-ctx.Done():
		_ = w.certificates.Close()
		return nil, fmt.Errorf("workload API %q: %w", cfg.Address, errors.Join(ctx.Err(), w.failure))
	}
}

type workload struct {
	shortestLife time.Duration
	certificates *Certificates
	reloads      reloads
	life         context.Context
	first        chan struct{} // closed with the first certificate
	failure      error         // that was told last; nil after a success
}

// watch keeps asking where the client gives up: after some answers it does.
func (w *workload) watch(client *workloadapi.Client) {
	for w.life.Err() == nil {
		_ = client.WatchX509Context(w.life, w) // it has told w
		select {
		case <-w.life.Done():
		case <-time.After(longestPause):
		}
	}
}

// OnX509ContextUpdate implements workloadapi.X509ContextWatcher.
func (w *workload) OnX509ContextUpdate(update *workloadapi.X509Context) {
	svid := update.DefaultSVID()
	next := &material{certificate: &tls.Certificate{PrivateKey: svid.PrivateKey, Leaf: svid.Certificates[0]}}
	for _, certificate := range svid.Certificates {
		next.certificate.Certificate = append(next.certificate.Certificate, certificate.Raw)
	}
	next.roots = w.certificates.generation(&roots{bundles: update.Bundles, shortestLife: w.shortestLife})
	initial := w.certificates.current.Swap(next) == nil
	w.failure = nil
	if initial {
		close(w.first)
		return
	}
	w.reloads.succeed(next)
}

// OnX509ContextWatchError implements workloadapi.X509ContextWatcher.
func (w *workload) OnX509ContextWatchError(err error) {
	if w.life.Err() != nil || w.failure != nil && w.failure.Error() == err.Error() {
		return
	}
	w.failure = err
	if w.certificates.current.Load() == nil {
		w.reloads.log.Warn("the workload API gives no certificate yet", "error", err)
		return
	}
	w.reloads.fail(fmt.Errorf("workload API: %w", err))
}

// pauses are those between attempts to reach the Workload API.
type pauses struct{}

// NewBackoff implements workloadapi.BackoffStrategy.
func (pauses) NewBackoff() workloadapi.Backoff { return &pause{next: shortestPause} }

type pause struct{ next time.Duration }

// Next implements workloadapi.Backoff.
func (p *pause) Next() time.Duration {
	now := p.next
	p.next = min(p.next+time.Second, longestPause)
	return now
}

// Reset implements workloadapi.Backoff.
func (p *pause) Reset() { p.next = shortestPause }
