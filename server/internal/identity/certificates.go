package identity

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
)

// DefaultShortestLife is the shortest life of a client certificate that is accepted where the
// configuration says nothing.
const DefaultShortestLife = time.Hour

// Certificates are a server's certificate, and the roots of its clients', as they are now. It is safe
// for concurrent use.
type Certificates struct {
	current atomic.Pointer[material]
	asks    bool // for client certificates
	close   func() error
}

// material is what is in force together. It is never changed.
type material struct {
	certificate *tls.Certificate
	roots       *roots // the same until others are in force
}

// generation returns the roots in force if they are the same as next, so that what was verified by them
// need not be verified again, or else next.
func (c *Certificates) generation(next *roots) *roots {
	m := c.current.Load()
	if m != nil && slices.EqualFunc(m.roots.bundles.Bundles(), next.bundles.Bundles(), (*x509bundle.Bundle).Equal) {
		return m.roots
	}
	return next
}

func lifeOrDefault(life time.Duration) time.Duration {
	if life == 0 {
		return DefaultShortestLife
	}
	return life
}

// Close ends the reloading and returns once nothing is reported any more. What is in force stays so.
func (c *Certificates) Close() error { return c.close() }

// reloads tells what becomes of reloading certificates.
type reloads struct {
	log    *slog.Logger
	failed func(error) // nil: nobody asks
}

func newReloads(log *slog.Logger, failed func(error)) reloads {
	if log == nil {
		log = slog.Default()
	}
	if failed == nil {
		failed = func(error) {}
	}
	return reloads{log, failed}
}

func (r reloads) fail(err error) {
	r.log.Error("new certificates are not used; those before stay in force", "error", err)
	r.failed(err)
}

func (r reloads) succeed(m *material) {
	r.log.Info("certificates reloaded", "expires", m.certificate.Leaf.NotAfter)
	r.failed(nil)
}
