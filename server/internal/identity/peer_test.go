package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

const harnessID = "spiffe://example.org/ns/prod/sa/harness"

func TestCallerIsASPIFFEID(t *testing.T) {
	ca, other := testca.New(t, "example.org"), testca.New(t, "example.org")
	below := ca.Intermediate(time.Now().Add(3 * time.Hour))
	certificates := server(t, ca, nil)
	uri := func(uris ...string) testca.Spec { return testca.Spec{URIs: uris} }
	changed := func(change func(*x509.Certificate)) testca.Spec {
		return testca.Spec{URIs: []string{harnessID}, Change: change}
	}
	tests := []struct {
		name string
		leaf *testca.Leaf
		want string // "": it is the harnessID
	}{
		{"no certificate", nil, "none"},
		{"good", ca.Issue(uri(harnessID)), ""},
		{"with other kinds of names", ca.Issue(testca.Spec{URIs: []string{harnessID}, DNSNames: []string{"a", "b"}, Emails: []string{"c@d"}}), ""},
		{"from an intermediate", below.Issue(uri(harnessID)), ""},
		{"for servers alone", ca.Issue(changed(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})), ""}, // X.509-SVIDs know no such difference
		{"another authority", other.Issue(uri(harnessID)), "not trusted"},
		{"expired", ca.Issue(testca.Spec{URIs: []string{harnessID}, NotBefore: time.Now().Add(-3 * time.Hour), NotAfter: time.Now().Add(-time.Second)}), "expired"},
		{"not yet valid", ca.Issue(testca.Spec{URIs: []string{harnessID}, NotBefore: time.Now().Add(time.Minute)}), "not yet valid"},
		{"short life", ca.Issue(testca.Spec{URIs: []string{harnessID}, NotAfter: time.Now().Add(58 * time.Minute)}), "life too short"},
		{"no URI", ca.Issue(testca.Spec{DNSNames: []string{"harness.example.org"}}), "names no one"},
		{"two URIs", ca.Issue(uri(harnessID, "spiffe://example.org/other")), "several names"},
		{"two URIs, one of another kind", ca.Issue(uri(harnessID, "https://example.org/harness")), "several names"},
		{"the same URI twice", ca.Issue(uri(harnessID, harnessID)), "several names"},
		{"another kind of URI", ca.Issue(uri("https://example.org/harness")), "not a SPIFFE ID"},
		{"a scheme in capitals", ca.Issue(changed(raw("SPIFFE" + harnessID[len("spiffe"):]))), "not a SPIFFE ID"},
		{"an empty fragment", ca.Issue(changed(raw(harnessID + "#"))), "not a SPIFFE ID"},
		{"an empty query", ca.Issue(changed(raw(harnessID + "?"))), "not a SPIFFE ID"},
		{"written by hand", ca.Issue(changed(raw(harnessID))), ""},
		{"query", ca.Issue(uri(harnessID + "?a")), "not a SPIFFE ID"},
		{"dots", ca.Issue(uri("spiffe://example.org/a/../b")), "not a SPIFFE ID"},
		{"too long", ca.Issue(uri("spiffe://example.org/" + strings.Repeat("a", 2048))), "not a SPIFFE ID"},
		{"no path", ca.Issue(uri("spiffe://example.org")), "SPIFFE ID without a path"},
		{"root path", ca.Issue(uri("spiffe://example.org/")), "not a SPIFFE ID"},
		{"another trust domain", ca.Issue(uri("spiffe://example.com/ns/prod/sa/harness")), "trust domain"},
		{"a trust domain below", ca.Issue(uri("spiffe://a.example.org/ns/prod/sa/harness")), "trust domain"},
		{"an authority's", ca.Issue(changed(func(c *x509.Certificate) { c.IsCA = true })), "not trusted"},
		{"an extension that must be understood", ca.Issue(changed(func(c *x509.Certificate) {
			c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}})
		})), "not trusted"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			peer := connect(t, certificates, ca, test.leaf)
			var want identity.Caller
			if test.want == "" {
				want = identity.Caller{Identity: identity.Identity{Source: "mtls", Issuer: "example.org", Name: harnessID}, SPIFFE: true}
			}
			for range 2 { // the second time by heart
				got, caller := checkPeer(t, peer, time.Now())
				if diff := cmp.Diff(want, caller); got != test.want || diff != "" {
					t.Errorf("got %q, want %q\n%s", got, test.want, diff)
				}
			}
		})
	}
}

// raw gives a certificate a URI as it is written, and no other name.
func raw(uri string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.URIs, c.IPAddresses = nil, nil
		names := append([]byte{0x86, byte(len(uri))}, uri...) // GeneralName [6], RFC 5280
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{
			Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: append([]byte{0x30, byte(len(names))}, names...),
		})
	}
}

func TestCallerIsAnotherName(t *testing.T) {
	ca := testca.New(t, "example.org")
	dns := server(t, ca, func(c *identity.FileConfig) { c.Name, c.TrustDomain = identity.DNSName, "corp network" })
	email := server(t, ca, func(c *identity.FileConfig) { c.Name, c.TrustDomain = identity.EmailName, "corp" })
	tests := []struct {
		name         string
		certificates *identity.Certificates
		spec         testca.Spec
		want         string
		caller       identity.Identity
	}{
		{name: "DNS", certificates: dns, spec: testca.Spec{DNSNames: []string{"harness.example.org"}, URIs: []string{harnessID}, Emails: []string{"a@b"}}, caller: identity.Identity{Source: "mtls", Issuer: "corp network", Name: "harness.example.org"}},
		{name: "two DNS", certificates: dns, spec: testca.Spec{DNSNames: []string{"a", "b"}}, want: "several names"},
		{name: "no DNS", certificates: dns, spec: testca.Spec{Emails: []string{"a@b"}}, want: "names no one"},
		{name: "DNS like a SPIFFE ID", certificates: dns, spec: testca.Spec{DNSNames: []string{harnessID}}, want: "name not allowed"},
		{name: "DNS with a line break", certificates: dns, spec: testca.Spec{DNSNames: []string{"a\nb"}}, want: "name not allowed"},
		{name: "DNS, for servers alone", certificates: dns, spec: testca.Spec{DNSNames: []string{"a"}, Change: func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}}, want: "not trusted"},
		{name: "e-mail", certificates: email, spec: testca.Spec{Emails: []string{"mei@example.org"}, DNSNames: []string{"a", "b"}}, caller: identity.Identity{Source: "mtls", Issuer: "corp", Name: "mei@example.org"}},
		{name: "two e-mail", certificates: email, spec: testca.Spec{Emails: []string{"a@b", "c@d"}}, want: "several names"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, caller := checkPeer(t, connect(t, test.certificates, ca, ca.Issue(test.spec)), time.Now())
			if diff := cmp.Diff(identity.Caller{Identity: test.caller}, caller); got != test.want || diff != "" {
				t.Errorf("got %q, want %q\n%s", got, test.want, diff)
			}
		})
	}
	t.Run("another authority", func(t *testing.T) {
		leaf := testca.New(t, "corp").Issue(testca.Spec{DNSNames: []string{"harness.example.org"}})
		expectCheck(t, connect(t, dns, ca, leaf), "not trusted")
	})
}

func TestLifeOfOpenConnections(t *testing.T) {
	ca := testca.New(t, "example.org")
	now := time.Now().Truncate(time.Second)
	short := ca.Intermediate(now.Add(30 * time.Minute))
	certificates := server(t, ca, nil)
	tests := []struct {
		name string
		leaf *testca.Leaf
		want map[time.Duration]string // by the time from now
	}{
		{
			"its own",
			ca.Issue(testca.Spec{URIs: []string{harnessID}, NotBefore: now, NotAfter: now.Add(time.Hour)}),
			map[time.Duration]string{-time.Second: "not yet valid", 0: "", time.Hour: "", time.Hour + 1: "expired", 2 * time.Hour: "expired"},
		},
		{
			"that of an intermediate",
			short.Issue(testca.Spec{URIs: []string{harnessID}, NotBefore: now, NotAfter: now.Add(time.Hour)}),
			map[time.Duration]string{0: "", 30 * time.Minute: "", 30*time.Minute + 1: "expired"},
		},
		{
			"that of the root",
			ca.Issue(testca.Spec{URIs: []string{harnessID}, NotBefore: now, NotAfter: now.Add(48 * time.Hour)}),
			map[time.Duration]string{23 * time.Hour: "", 25 * time.Hour: "not trusted"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			peer := connect(t, certificates, ca, test.leaf)
			for after, want := range test.want { // in any order
				if got, _ := checkPeer(t, peer, now.Add(after)); got != want {
					t.Errorf("after %s: got %q, want %q", after, got, want)
				}
			}
		})
	}
}
