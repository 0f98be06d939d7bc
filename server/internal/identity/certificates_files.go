package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/promptassembly/promptassembly/server/internal/watch"
)

// FileConfig says where certificates are, in PEM.
type FileConfig struct {
	// Certificate and Key are the server's; intermediates follow the certificate.
	Certificate, Key string
	// ClientCA holds the authorities of client certificates. Empty: no client is asked for one.
	ClientCA string
	// TrustDomain is the issuer of all names. It is needed with ClientCA, and with SPIFFEName it is the
	// only trust domain of SPIFFE IDs.
	TrustDomain string
	// Name is what of a client's certificate is its name.
	Name CertificateName
	// ShortestLife is the shortest life, from beginning to end, of a client certificate that is accepted.
	// 0: DefaultShortestLife.
	ShortestLife time.Duration
	// Log is told of each reload. Nil: slog.Default().
	Log *slog.Logger
	// Failed is told what became of each reload: an error, or nil if it succeeded. It is called by one
	// goroutine at a time and must not call Close. It can be nil.
	Failed func(error)
}

// OpenFiles reads certificates, and reads them again, all together, whenever one of the files changed.
// What cannot be read, does not fit together or has expired is not used, and what was before stays in
// force. The caller closes it.
func OpenFiles(cfg FileConfig) (*Certificates, error) {
	f := &files{
		cfg:          cfg,
		certificates: &Certificates{asks: cfg.ClientCA != ""},
		reloads:      newReloads(cfg.Log, cfg.Failed),
	}
	if f.certificates.asks {
		if err := f.checkTrustDomain(); err != nil {
			return nil, err
		}
	}
	read, fingerprint := f.read()
	first, err := f.parse(read)
	if err != nil {
		return nil, err
	}
	f.certificates.current.Store(first)
	f.last = fingerprint
	paths := []string{cfg.Certificate, cfg.Key}
	if f.certificates.asks {
		paths = append(paths, cfg.ClientCA)
	}
	watcher, err := watch.Files(paths, f.reloads.log, f.reload)
	if err != nil {
		return nil, err
	}
	f.certificates.close = watcher.Close
	f.reload() // what changed before the watch
	return f.certificates, nil
}

type files struct {
	cfg          FileConfig
	domain       spiffeid.TrustDomain
	certificates *Certificates
	reloads      reloads

	mu   sync.Mutex        // guards last
	last [sha256.Size]byte // the fingerprint of what was read
}

func (f *files) checkTrustDomain() error {
	if f.cfg.TrustDomain == "" {
		return errors.New("client certificates need a trust domain")
	}
	if f.cfg.Name != SPIFFEName {
		return nil
	}
	domain, err := spiffeid.TrustDomainFromString(f.cfg.TrustDomain)
	if err == nil && domain.Name() != f.cfg.TrustDomain {
		err = fmt.Errorf("it is written %s", domain.Name())
	}
	if err != nil {
		return fmt.Errorf("trust domain %q: %w", f.cfg.TrustDomain, err)
	}
	f.domain = domain
	return nil
}

// contents are the files as they were read.
type contents struct {
	certificate, key, clientCA []byte
	err                        error
}

// mostReads bounds how often files are read that change all the time.
const mostReads = 5

// read reads the files until they are twice the same: in between, a mounted secret may have been swapped.
func (f *files) read() (contents, [sha256.Size]byte) {
	last := f.readOnce()
	fingerprint := last.fingerprint()
	for range mostReads - 1 {
		before := fingerprint
		last = f.readOnce()
		if fingerprint = last.fingerprint(); fingerprint == before {
			break
		}
	}
	return last, fingerprint
}

func (f *files) readOnce() (c contents) {
	var errs [3]error
	c.certificate, errs[0] = os.ReadFile(f.cfg.Certificate)
	c.key, errs[1] = os.ReadFile(f.cfg.Key)
	if f.certificates.asks {
		c.clientCA, errs[2] = os.ReadFile(f.cfg.ClientCA)
	}
	c.err = errors.Join(errs[:]...)
	return c
}

// fingerprint tells contents apart.
func (c contents) fingerprint() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %v", c.certificate, c.key, c.clientCA, c.err))
}

func (f *files) reload() {
	f.mu.Lock()
	defer f.mu.Unlock()
	read, fingerprint := f.read()
	if fingerprint == f.last {
		return
	}
	f.last = fingerprint
	next, err := f.parse(read)
	if err != nil {
		f.reloads.fail(err)
		return
	}
	f.certificates.current.Store(next)
	f.reloads.succeed(next)
}

func (f *files) parse(c contents) (*material, error) {
	if c.err != nil {
		return nil, c.err
	}
	pair, err := tls.X509KeyPair(c.certificate, c.key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", f.cfg.Certificate, f.cfg.Key, err)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("%s: expired on %s", f.cfg.Certificate, pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	m := &material{certificate: &pair}
	if !f.certificates.asks {
		return m, nil
	}
	authorities, err := parseAuthorities(c.clientCA)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.cfg.ClientCA, err)
	}
	bundles := x509bundle.NewSet(x509bundle.FromX509Authorities(f.domain, authorities))
	m.roots = f.certificates.generation(&roots{
		name:         f.cfg.Name,
		trustDomain:  f.cfg.TrustDomain,
		bundles:      bundles,
		shortestLife: lifeOrDefault(f.cfg.ShortestLife),
	})
	return m, nil
}

// parseAuthorities parses certificates of authorities, at least one. It is strict, so that a root that is
// only half there is not taken for one that was removed.
func parseAuthorities(data []byte) ([]*x509.Certificate, error) {
	var authorities []*x509.Certificate
	for n := bytes.Count(data, []byte("-----BEGIN ")); n > 0; n-- {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil, errors.New("a PEM block is broken")
		}
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("it holds a PEM block that is no CERTIFICATE")
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if !authority.IsCA {
			return nil, errors.New("it holds a certificate that is not an authority's")
		}
		authorities = append(authorities, authority)
	}
	if authorities == nil {
		return nil, errors.New("it holds no certificate")
	}
	return authorities, nil
}
