// Package testca makes certificates, and serves the SPIFFE Workload API, for tests.
package testca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is an authority that was made on the spot.
type CA struct {
	// TrustDomain is whose bundle of the Workload API it is in.
	TrustDomain string
	Certificate *x509.Certificate

	t   testing.TB
	key crypto.Signer
	// above are the certificates that lead to a root, this one first; none of a root.
	above []*x509.Certificate
}

// New returns a root that is valid from an hour ago for a day.
func New(t testing.TB, trustDomain string) *CA {
	t.Helper()
	ca := &CA{TrustDomain: trustDomain, t: t, key: newKey(t)}
	ca.Certificate = sign(t, authority(trustDomain, time.Now().Add(24*time.Hour)), nil, ca.key, ca.key)
	return ca
}

// Intermediate returns an authority below ca that is valid from an hour ago until notAfter.
func (ca *CA) Intermediate(notAfter time.Time) *CA {
	ca.t.Helper()
	below := &CA{TrustDomain: ca.TrustDomain, t: ca.t, key: newKey(ca.t)}
	below.Certificate = sign(ca.t, authority(ca.TrustDomain, notAfter), ca.Certificate, below.key, ca.key)
	below.above = append([]*x509.Certificate{below.Certificate}, ca.above...)
	return below
}

// Pool returns a pool that holds the certificate of ca.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	return pool
}

// Spec says what a certificate is like.
type Spec struct {
	URIs, DNSNames, Emails []string
	// NotBefore and NotAfter default to a minute ago and two hours ahead.
	NotBefore, NotAfter time.Time
	// Change makes it unlike others; nil changes nothing.
	Change func(*x509.Certificate)
}

// Leaf is a certificate and its key.
type Leaf struct {
	// TLS holds the intermediates, too.
	TLS tls.Certificate

	t testing.TB
}

// Issue returns a certificate for a client, and for a server on loopback.
func (ca *CA) Issue(spec Spec) *Leaf {
	ca.t.Helper()
	template := &x509.Certificate{
		NotBefore:             spec.NotBefore,
		NotAfter:              spec.NotAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              spec.DNSNames,
		EmailAddresses:        spec.Emails,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Minute)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(2 * time.Hour)
	}
	for _, text := range spec.URIs {
		uri, err := url.Parse(text)
		if err != nil {
			ca.t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	if spec.Change != nil {
		spec.Change(template)
	}
	key := newKey(ca.t)
	leaf := &Leaf{t: ca.t, TLS: tls.Certificate{PrivateKey: key}}
	leaf.TLS.Leaf = sign(ca.t, template, ca.Certificate, key, ca.key)
	for _, certificate := range append([]*x509.Certificate{leaf.TLS.Leaf}, ca.above...) {
		leaf.TLS.Certificate = append(leaf.TLS.Certificate, certificate.Raw)
	}
	return leaf
}

// WritePEM writes tls.crt, tls.key and, if there are trusted authorities, ca.crt to a folder. Each file
// is replaced at once.
func (l *Leaf) WritePEM(dir string, trusted ...*CA) {
	l.t.Helper()
	var chain, authorities []byte
	for _, raw := range l.TLS.Certificate {
		chain = append(chain, block("CERTIFICATE", raw)...)
	}
	key, err := x509.MarshalPKCS8PrivateKey(l.TLS.PrivateKey)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, ca := range trusted {
		authorities = append(authorities, block("CERTIFICATE", ca.Certificate.Raw)...)
	}
	Write(l.t, filepath.Join(dir, "tls.key"), block("PRIVATE KEY", key))
	Write(l.t, filepath.Join(dir, "tls.crt"), chain)
	if authorities != nil {
		Write(l.t, filepath.Join(dir, "ca.crt"), authorities)
	}
}

// Write replaces a file at once.
func Write(t testing.TB, path string, data []byte) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func block(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

func authority(name string, notAfter time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              notAfter,
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign signs a certificate; without a parent it is its own.
func sign(t testing.TB, template, parent *x509.Certificate, key, by crypto.Signer) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = serial
	if parent == nil {
		parent = template
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
