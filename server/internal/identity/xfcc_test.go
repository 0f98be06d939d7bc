package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

const (
	xfccName  = "x-forwarded-client-cert"
	proxyID   = "spiffe://example.org/envoy"
	harness   = "spiffe://example.org/ns/a/sa/harness"
	fullXFCC  = `By=spiffe://example.org/server;Hash=468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688;Cert="-----BEGIN%20CERTIFICATE-----%0A";Chain="-----BEGIN%20CERTIFICATE-----%0A";Subject="CN=L. Eagle,O=Sue\, Grabbit and Runn";URI=spiffe://example.org/ns/a/sa/harness;DNS=a.example.org;DNS=b.example.org`
	maxHeader = 16 << 10
)

// behindEnvoy authenticates a call through a proxy that names callers of example.org and example.net.
func behindEnvoy(values ...string) (*identity.Caller, error) {
	a := identity.NewAuthenticator(nil)
	a.Configure([]identity.Proxy{{
		SPIFFEID: proxyID, Names: identity.XFCC, TrustDomains: []string{"example.org", "example.net"},
	}}, false)
	return a.Authenticate(context.Background(), certified(proxyID), metadata.MD{xfccName: values}, nil)
}

func TestXFCC(t *testing.T) {
	for _, test := range []struct{ header, issuer, name string }{
		{"URI=" + harness, "example.org", harness},
		{"uri=" + harness, "example.org", harness},
		{"uRi=" + harness, "example.org", harness},
		{`URI="` + harness + `"`, "example.org", harness},
		{fullXFCC, "example.org", harness},
		{`Subject="";URI=spiffe://example.net/a`, "example.net", "spiffe://example.net/a"},
		{`Subject="CN=a \"b\" \\";URI=` + harness, "example.org", harness},
		{`Subject="CN=\C3\a9\#\+\;\<\>\=\ ";URI=` + harness, "example.org", harness},
		// Of what is quoted, nothing is another pair or element.
		{`Subject="CN=\";URI=spiffe://example.org/admin,URI=spiffe://example.org/b;\"";URI=` + harness, "example.org", harness},
		{`By=spiffe://example.org/one;By=spiffe://example.org/two;URI=` + harness, "example.org", harness},
		{`By="a=b";DNS="a,b";URI=` + harness, "example.org", harness},
		{"DNS=" + strings.Repeat("a", maxHeader-len("DNS=;URI="+harness)) + ";URI=" + harness, "example.org", harness},
		{"URI=spiffe://example.org/" + strings.Repeat("a", 2048-len("spiffe://example.org/")), "example.org", "spiffe://example.org/" + strings.Repeat("a", 2048-len("spiffe://example.org/"))},
	} {
		got, err := behindEnvoy(test.header)
		want := &identity.Caller{
			Identity: identity.Identity{Source: identity.XFCC, Issuer: test.issuer, Name: test.name}, SPIFFE: true,
		}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%.200s: %v, %v, want %v", test.header, got, err, want)
		}
	}
}

func TestXFCCRefused(t *testing.T) {
	for header, check := range map[string]string{
		"":                                       "malformed",
		" ":                                      "malformed",
		"URI":                                    "malformed",
		"=" + harness:                            "unknown key",
		harness:                                  "malformed",
		"URI=":                                   "no URI",
		"URI=;DNS=a":                             "no URI",
		`URI=""`:                                 "malformed",
		"Hash=ab":                                "no URI",
		"By=" + harness:                          "no URI",
		`Subject="URI=` + harness + `"`:          "no URI",
		"URI=" + harness + ";URI=" + harness:     "several URIs",
		"URI=" + harness + ";uri=" + harness:     "several URIs",
		"URI=;URI=" + harness:                    "no URI",
		"URI=" + harness + ";URI=":               "several URIs",
		"URI=" + harness + ",URI=" + harness:     "several elements",
		"URI=" + harness + ", URI=" + harness:    "several elements",
		"URI=" + harness + ",":                   "several elements",
		"Hash=ab,URI=" + harness:                 "several elements",
		",URI=" + harness:                        "unknown key",
		"URI=" + harness + ";":                   "malformed",
		";URI=" + harness:                        "unknown key",
		"Hash=ab;;URI=" + harness:                "unknown key",
		"URI=" + harness + " ":                   "malformed",
		" URI=" + harness:                        "unknown key",
		"URI = " + harness:                       "unknown key",
		"URI= " + harness:                        "malformed",
		"Hash=ab; URI=" + harness:                "unknown key",
		"URI=" + harness + "\t":                  "malformed",
		"URI=" + harness + "\x00":                "malformed",
		"URI=" + harness + ";DNS=ü":              "malformed",
		"Sub\u017fect=a;URI=" + harness:          "unknown key",
		"SAN=a;URI=" + harness:                   "unknown key",
		"Hash=a;Hash=a;URI=" + harness:           "repeated key",
		"Cert=a;cert=a;URI=" + harness:           "repeated key",
		"Chain=a;CHAIN=a;URI=" + harness:         "repeated key",
		`Subject="";Subject="";URI=` + harness:   "repeated key",
		"Subject=;URI=" + harness:                "malformed",
		`By="";URI=` + harness:                   "malformed",
		"By=;URI=" + harness:                     "malformed",
		"By=a=b;URI=" + harness:                  "malformed",
		"URI=" + harness + "=a":                  "malformed",
		`URI="` + harness:                        "malformed",
		`URI=` + harness + `"`:                   "malformed",
		`URI="` + harness + `"a`:                 "malformed",
		`URI="` + harness + `""`:                 "malformed",
		`URI=spiffe://"example.org/a"`:           "malformed",
		`URI=spiffe://example.org/\a`:            "malformed",
		`URI="spiffe://example.org/\a"`:          "malformed",
		`URI="spiffe://example.org/\\a"`:         "no SPIFFE ID",
		`URI="spiffe://example.org/\"a"`:         "no SPIFFE ID",
		`URI="` + harness + `\"`:                 "malformed",
		`URI="` + harness + `\`:                  "malformed",
		`Cert="a\,b";URI=` + harness:             "malformed",
		`Subject="a\x";URI=` + harness:           "malformed",
		`Subject="a\C";URI=` + harness:           "malformed",
		`Subject="a` + "\n" + `";URI=` + harness: "malformed",
		`Subject="a\";URI=` + harness:            "malformed",
		`Subject="a";URI=` + harness + `;DNS="`:  "malformed",
		// What a caller sends to open a quote that a proxy's appended element would close.
		`URI=spiffe://example.org/admin;Cert="` + `,Hash=ab;URI=` + harness:                      "malformed",
		`URI=spiffe://example.org/admin;Cert="` + `,Hash=ab;Subject="";URI=` + harness:           "malformed",
		`URI=spiffe://example.org/admin;Cert="` + `,Hash=ab;Subject="CN=a";URI=` + harness:       "malformed",
		`URI=spiffe://example.org/admin;Subject="\` + `,Hash=ab;Subject="CN=a";URI=` + harness:   "malformed",
		`URI=spiffe://example.org/admin;Subject="a` + `,Hash=ab;Subject="CN=\";";URI=` + harness: "malformed",
		// It is neither decoded nor put into another form.
		"URI=spiffe%3A%2F%2Fexample.org%2Fa":            "no SPIFFE ID",
		"URI=spiffe://example.org/%61":                  "no SPIFFE ID",
		"URI=SPIFFE://example.org/a":                    "no SPIFFE ID",
		"URI=spiffe://EXAMPLE.org/a":                    "no SPIFFE ID",
		"URI=spiffe://example.org":                      "no SPIFFE ID",
		"URI=spiffe://example.org/":                     "no SPIFFE ID",
		"URI=spiffe://example.org/a/":                   "no SPIFFE ID",
		"URI=spiffe://example.org//a":                   "no SPIFFE ID",
		"URI=spiffe://example.org/../a":                 "no SPIFFE ID",
		"URI=spiffe://example.org:443/a":                "no SPIFFE ID",
		"URI=spiffe://user@example.org/a":               "no SPIFFE ID",
		"URI=spiffe://example.org/a?b":                  "no SPIFFE ID",
		"URI=spiffe://example.org/a#b":                  "no SPIFFE ID",
		"URI=spiffe:///a":                               "no SPIFFE ID",
		"URI=https://example.org/a":                     "no SPIFFE ID",
		"URI=spiffe://example.com/ns/a/sa/harness":      "another trust domain",
		"URI=spiffe://a.example.org/ns/a/sa/harness":    "another trust domain",
		"URI=spiffe://example.org.evil/ns/a/sa/harness": "another trust domain",
		"URI=spiffe://example.org/" + strings.Repeat("a", 2049-len("spiffe://example.org/")):   "no SPIFFE ID",
		"DNS=" + strings.Repeat("a", maxHeader-len("DNS=;URI="+harness)+1) + ";URI=" + harness: "too long",
	} {
		refused(t, check, header)
	}
	refused(t, "several values", "URI="+harness, "URI="+harness)
	refused(t, "several values", "URI="+harness, "")
}

func refused(t *testing.T, check string, values ...string) {
	t.Helper()
	caller, err := behindEnvoy(values...)
	invalid, ok := errors.AsType[*identity.InvalidError](err)
	if !ok || invalid.Source != identity.XFCC || invalid.Check != check || caller != nil {
		t.Errorf("%.200q: %v, %v, want %s", values, caller, err, check)
	}
}

// Whatever is accepted is one element with one URI, the caller's name, to a reader that works otherwise:
// it takes the escapes out first, then splits.
func FuzzXFCC(f *testing.F) {
	f.Add(fullXFCC)
	for _, seed := range []string{
		"", "URI=" + harness, `uri="` + harness + `"`, `Subject="CN=\"\\";URI=` + harness, `Subject="a\,b";URI=` + harness,
		"URI=" + harness + ",URI=" + harness, "URI=" + harness + ";URI=" + harness, `By="a;b,c=d";URI=` + harness,
		`Subject="";Hash=ab;DNS=a;DNS=b;URI=spiffe://example.net/a`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		caller, err := behindEnvoy(header)
		if err != nil {
			if _, ok := errors.AsType[*identity.InvalidError](err); !ok || caller != nil {
				t.Fatalf("%v, %v", caller, err)
			}
			return
		}
		plain := strings.NewReplacer(`\\`, "", `\"`, "").Replace(header)
		parts := strings.Split(plain, `"`)
		if len(parts)%2 == 0 {
			t.Fatal("a quote is open")
		}
		for i := 1; i < len(parts); i += 2 { // what is within quotes
			parts[i] = strings.NewReplacer(",", ".", ";", ".", "=", ".").Replace(parts[i])
		}
		plain = strings.Join(parts, "")
		if strings.Contains(plain, ",") {
			t.Fatal("several elements")
		}
		var uris []string
		for _, pair := range strings.Split(plain, ";") {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" || strings.Contains(value, "=") {
				t.Fatalf("a pair %q", pair)
			}
			if strings.ToLower(key) == "uri" {
				uris = append(uris, value)
			}
		}
		if len(uris) != 1 || uris[0] != caller.Name || caller.Source != identity.XFCC || !caller.SPIFFE {
			t.Fatalf("%v names %v", uris, caller)
		}
		if !strings.HasPrefix(caller.Name, "spiffe://"+caller.Issuer+"/") {
			t.Fatalf("%v is not of its issuer", caller)
		}
		anew, err := behindEnvoy("DNS=x;URI=" + uris[0])
		if err != nil || !cmp.Equal(anew, caller) {
			t.Fatalf("once written anew: %v, %v, want %v", anew, err, caller)
		}
	})
}

func BenchmarkXFCC(b *testing.B) {
	peer, header := certified(proxyID), metadata.MD{xfccName: {fullXFCC}}
	a := identity.NewAuthenticator(nil)
	a.Configure([]identity.Proxy{{SPIFFEID: proxyID, Names: identity.XFCC, TrustDomains: []string{"example.org"}}}, false)
	for b.Loop() {
		if _, err := a.Authenticate(b.Context(), peer, header, nil); err != nil {
			b.Fatal(err)
		}
	}
}
