package dev

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"time"
)

// life is how long certificates are good for.
const life = 30 * 24 * time.Hour

// certificates makes an authority and what it vouches for, and returns the content of each file by its
// path.
func (f Files) certificates() (map[string][]byte, error) {
	now := time.Now()
	ca, caKey, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "Prompt Assembly development"}, URIs: uri("spiffe://" + TrustDomain),
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	if err != nil {
		return nil, err
	}
	contents := map[string][]byte{f.CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})}
	for _, who := range []struct {
		id    string
		files Identity
	}{{ServerID, f.Server}, {Harness, f.Harness}, {Agent, f.Agent}} {
		template := &x509.Certificate{
			URIs: uri(who.id), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if who.id == ServerID {
			template.DNSNames = []string{"localhost"}
			template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		}
		certificate, key, err := issue(template, ca, caKey)
		if err != nil {
			return nil, err
		}
		encoded, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		contents[who.files.Certificate] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
		contents[who.files.Key] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	}
	return contents, nil
}

// issue makes a key and a certificate for it; without an authority it is its own.
func issue(template, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if authority == nil {
		authority, authorityKey = template, key
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(encoded)
	return certificate, key, err
}

func uri(id string) []*url.URL {
	parsed, err := url.Parse(id)
	if err != nil {
		panic(err) // the IDs are above
	}
	return []*url.URL{parsed}
}
