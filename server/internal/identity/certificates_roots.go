package identity

import (
	"crypto/x509"
	"encoding/asn1"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
)

// CertificateName is what of a client's certificate is its name.
type CertificateName uint8

// The names.
const (
	// SPIFFEName is the one URI SAN, a SPIFFE ID with a path.
	SPIFFEName CertificateName = iota
	// DNSName is the one DNS SAN, as it is written.
	DNSName
	// EmailName is the one e-mail SAN, as it is written.
	EmailName
)

// What of a certificate did not hold.
const (
	checkPast        = "expired"
	checkNotYet      = "not yet valid"
	checkUntrusted   = "not trusted"
	checkShort       = "life too short"
	checkNoName      = "names no one"
	checkSeveral     = "several names"
	checkName        = "name not allowed"
	checkNotSPIFFE   = "not a SPIFFE ID"
	checkPath        = "SPIFFE ID without a path"
	checkTrustDomain = "trust domain"
)

// roots is what client certificates are verified by. It is never changed.
type roots struct {
	name         CertificateName
	trustDomain  string          // of other names than SPIFFE IDs
	bundles      *x509bundle.Set // by trust domain; of other names, one of none
	shortestLife time.Duration
}

// authorities returns those that may vouch for a trust domain.
func (r *roots) authorities(of spiffeid.TrustDomain) ([]*x509.Certificate, bool) {
	bundle, ok := r.bundles.Get(of)
	if !ok {
		return nil, false
	}
	return bundle.X509Authorities(), true
}

// verdict is what came of verifying a chain. It is never changed.
type verdict struct {
	caller *Caller
	err    error

	roots       *roots
	from, until time.Time // when it holds; until is not in it. Zero: no bound
}

func (v *verdict) holds(by *roots, now time.Time) bool {
	return v.roots == by && !now.Before(v.from) && (v.until.IsZero() || now.Before(v.until))
}

// verify verifies a chain whose leaf is first.
func (r *roots) verify(chain []*x509.Certificate, now time.Time) *verdict {
	v := &verdict{roots: r}
	named, domain, check := r.nameOf(chain[0])
	if check == "" {
		authorities, ok := r.authorities(domain)
		switch {
		case !ok:
			check = checkTrustDomain
		case chain[0].NotAfter.Sub(chain[0].NotBefore) < r.shortestLife:
			check = checkShort
		default:
			v.from, v.until = unchanged(now, chain, authorities)
			check = r.trust(chain, authorities, now)
		}
	}
	if check != "" {
		v.err = &InvalidError{MTLS, check}
		return v
	}
	v.caller = named
	return v
}

// nameOf returns who a certificate says its owner is, and the trust domain whose authorities have to
// vouch for it.
func (r *roots) nameOf(leaf *x509.Certificate) (named *Caller, domain spiffeid.TrustDomain, check string) {
	var names []string
	switch r.name {
	case SPIFFEName:
		for _, uri := range leaf.URIs {
			names = append(names, uri.String())
		}
	case DNSName:
		names = leaf.DNSNames
	case EmailName:
		names = leaf.EmailAddresses
	}
	switch {
	case len(names) == 0:
		return nil, domain, checkNoName
	case len(names) > 1:
		return nil, domain, checkSeveral
	}
	if r.name != SPIFFEName {
		if !allowed(names[0]) {
			return nil, domain, checkName
		}
		return &Caller{Identity: Identity{MTLS, r.trustDomain, names[0]}}, domain, ""
	}
	id, err := x509svid.IDFromCert(leaf)
	switch {
	case err != nil || len(id.String()) > MaxNameBytes || !writtenAs(leaf, id.String()):
		return nil, domain, checkNotSPIFFE
	case id.Path() == "":
		return nil, domain, checkPath
	}
	return &Caller{Identity: Identity{MTLS, id.TrustDomain().Name(), id.String()}, SPIFFE: true}, id.TrustDomain(), ""
}

// writtenAs reports whether a certificate's one URI is written just so: net/url, which crypto/x509 reads it
// with, makes "SPIFFE://" and an empty fragment the same as a SPIFFE ID without.
func writtenAs(leaf *x509.Certificate, uri string) bool {
	const tagURI = 6 // of GeneralName, RFC 5280 section 4.2.1.6
	for _, extension := range leaf.Extensions {
		var names []asn1.RawValue
		if !extension.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			continue
		}
		if rest, err := asn1.Unmarshal(extension.Value, &names); err != nil || len(rest) > 0 {
			return false
		}
		for _, name := range names {
			if name.Class == asn1.ClassContextSpecific && name.Tag == tagURI {
				return string(name.Bytes) == uri
			}
		}
	}
	return false
}

// allowed reports whether a DNS or e-mail SAN, which is ASCII, can be a name. It must not look like a
// SPIFFE ID.
func allowed(name string) bool {
	control := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return name != "" && len(name) <= MaxNameBytes && !strings.ContainsFunc(name, control) && !strings.Contains(name, "://")
}

// trust returns what is wrong with a chain.
func (r *roots) trust(chain, authorities []*x509.Certificate, now time.Time) (check string) {
	var err error
	if r.name == SPIFFEName {
		_, _, err = x509svid.Verify(chain, r.bundles, x509svid.WithTime(now))
	} else {
		_, err = chain[0].Verify(x509.VerifyOptions{
			Roots:         pool(authorities),
			Intermediates: pool(chain[1:]),
			KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			CurrentTime:   now,
		})
	}
	switch {
	case err == nil:
		return ""
	case slices.ContainsFunc(chain, func(c *x509.Certificate) bool { return now.After(c.NotAfter) }):
		return checkPast
	case slices.ContainsFunc(chain, func(c *x509.Certificate) bool { return now.Before(c.NotBefore) }):
		return checkNotYet
	}
	return checkUntrusted
}

func pool(certificates []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool
}

// unchanged returns the time around now in which none of the certificates begins or ceases to be valid.
// A zero time is no bound.
func unchanged(now time.Time, chain, authorities []*x509.Certificate) (from, until time.Time) {
	for _, certificate := range slices.Concat(chain, authorities) {
		for _, change := range []time.Time{certificate.NotBefore, certificate.NotAfter.Add(1)} { // valid to the end of it
			if change.After(now) {
				if until.IsZero() || change.Before(until) {
					until = change
				}
			} else if change.After(from) {
				from = change
			}
		}
	}
	return from, until
}
