package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/url"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// hostileLeaf returns a certificate with the harness's name that a key signs, its own if by is nil.
func hostileLeaf(t testing.TB, parent *x509.Certificate, by any) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := url.Parse(hostileHarness)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), URIs: []*url.URL{id},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(2 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if by == nil {
		parent, by = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// Whatever of a certificate does not hold, every call over its connection is refused, whatever else it
// carries.
func TestHostileCertificates(t *testing.T) {
	f := hostileServe(t, true, server.Config{})
	now := time.Now()
	evil := testca.New(t, "example.org")
	agent := f.leaf(hostileAgent)
	changed := func(change func(*x509.Certificate)) *tls.Certificate {
		return &f.ca.Issue(testca.Spec{URIs: []string{hostileHarness}, Change: change}).TLS
	}
	signedByAgent := hostileLeaf(t, agent.Leaf, agent.PrivateKey)
	signedByAgent.Certificate = append(signedByAgent.Certificate, agent.Certificate...)
	besideHarness := hostileLeaf(t, nil, nil)
	besideHarness.Certificate = append(besideHarness.Certificate, f.leaf(hostileHarness).Certificate...)
	withTheRoot := &evil.Issue(testca.Spec{URIs: []string{hostileHarness}}).TLS
	withTheRoot.Certificate = append(withTheRoot.Certificate, evil.Certificate.Raw, f.ca.Certificate.Raw)
	good := hostileBearers(f.idp.token(nil))
	for name, test := range map[string]struct {
		certificate *tls.Certificate
		check       string
	}{
		"two names":                     {f.leaf(hostileAgent, hostileHarness), "several names"},
		"one name twice":                {f.leaf(hostileHarness, hostileHarness), "several names"},
		"a name and another URI":        {f.leaf(hostileHarness, "https://example.org/harness"), "several names"},
		"no path":                       {f.leaf("spiffe://example.org"), "SPIFFE ID without a path"},
		"an empty path":                 {f.leaf("spiffe://example.org/"), "not a SPIFFE ID"},
		"another trust domain":          {f.leaf("spiffe://evil.test/harness"), "trust domain"},
		"a trust domain below":          {f.leaf("spiffe://ns.example.org/harness"), "trust domain"},
		"a port":                        {f.leaf("spiffe://example.org:443/harness"), "not a SPIFFE ID"},
		"a user":                        {f.leaf("spiffe://harness@example.org/harness"), "not a SPIFFE ID"},
		"a path that climbs":            {f.leaf("spiffe://example.org/agent/../harness"), "not a SPIFFE ID"},
		"an escaped path":               {f.leaf("spiffe://example.org/agent%2F..%2Fharness"), "not a SPIFFE ID"},
		"a query":                       {f.leaf("spiffe://example.org/harness?x"), "not a SPIFFE ID"},
		"another scheme":                {f.leaf("https://example.org/harness"), "not a SPIFFE ID"},
		"no URI":                        {&f.ca.Issue(testca.Spec{DNSNames: []string{"harness.example.org"}}).TLS, "names no one"},
		"another authority":             {&evil.Issue(testca.Spec{URIs: []string{hostileHarness}}).TLS, "not trusted"},
		"another one, and the root":     {withTheRoot, "not trusted"},
		"its own signature":             {hostileLeaf(t, nil, nil), "not trusted"},
		"its own beside the harness's":  {besideHarness, "not trusted"},
		"a leaf as the authority":       {signedByAgent, "not trusted"},
		"an authority":                  {changed(func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign }), "not trusted"},
		"a life of 10 min":              {&f.ca.Issue(testca.Spec{URIs: []string{hostileHarness}, NotAfter: now.Add(10 * time.Minute)}).TLS, "life too short"},
		"expired":                       {&f.ca.Issue(testca.Spec{URIs: []string{hostileHarness}, NotBefore: now.Add(-3 * time.Hour), NotAfter: now.Add(-time.Second)}).TLS, "expired"},
		"not yet valid":                 {&f.ca.Issue(testca.Spec{URIs: []string{hostileHarness}, NotBefore: now.Add(time.Minute), NotAfter: now.Add(3 * time.Hour)}).TLS, "not yet valid"},
		"an intermediate that is stale": {&f.ca.Intermediate(now.Add(-time.Second)).Issue(testca.Spec{URIs: []string{hostileHarness}}).TLS, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			p := f.peer(t, test.certificate)
			want := hostileVerdict{"IDENTITY_INVALID", "mtls", test.check}
			f.refuses(t, p, want)
			f.refuses(t, p, want, good...) // which would do by itself
			f.refuses(t, p, want, "x-forwarded-client-cert", "URI="+hostileHarness)
		})
	}
	t.Run("a key of its own", func(t *testing.T) { // the harness's chain is no secret
		certificate := *f.leaf(hostileHarness)
		certificate.PrivateKey = f.leaf(hostileHarness).PrivateKey
		conn := tls.Client(dialTCP(t, f.address), f.tls(&certificate))
		if err := conn.HandshakeContext(t.Context()); err == nil {
			p := greet(t, conn)
			if a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers")...)); len(a.header) > 0 {
				t.Errorf("answered with %v", a.header)
			}
		}
	})
	t.Run("TLS 1.2", func(t *testing.T) {
		config := f.tls(f.leaf(hostileHarness))
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		if err := tls.Client(dialTCP(t, f.address), config).HandshakeContext(t.Context()); err == nil {
			t.Error("the server shook hands")
		}
	})
	t.Run("no TLS", func(t *testing.T) {
		p := dialPeer(t, f.address)
		if a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers", good...)...)); len(a.header) > 0 {
			t.Errorf("answered with %v", a.header)
		}
	})
	t.Run("none", func(t *testing.T) { f.refuses(t, f.peer(t, nil), hostileMissing) })
	t.Run("what holds", func(t *testing.T) {
		f.answers(t, f.peer(t, f.leaf(hostileHarness)), "")
		f.answers(t, f.peer(t, agent), "AUTHORITY_NOT_PERMITTED")
		f.answers(t, f.peer(t, f.leaf(hostileHarness+"/below")), "SCOPE_NOT_PERMITTED")
		f.answers(t, f.peer(t, f.leaf("spiffe://example.org/Harness")), "SCOPE_NOT_PERMITTED")
		both := *agent // what follows the leaf names nobody
		both.Certificate = append(both.Certificate[:1:1], f.leaf(hostileHarness).Certificate...)
		f.answers(t, f.peer(t, &both), "AUTHORITY_NOT_PERMITTED")
	})
	f.isEmpty(t)
}

// A certificate and a token that are not of one caller are nobody's.
func TestHostileDisagreement(t *testing.T) {
	f := hostileServe(t, true, server.Config{})
	svid := func(name string) []string {
		return hostileBearers(f.svid.token(func(h *hostileToken) { h.claims["sub"] = name }))
	}
	harness, agent, stranger := f.peer(t, f.leaf(hostileHarness)), f.peer(t, f.leaf(hostileAgent)), f.peer(t, f.leaf("spiffe://example.org/stranger"))
	invalid := func(check string) hostileVerdict { return hostileVerdict{"IDENTITY_INVALID", "jwt", check} }
	for name, test := range map[string]struct {
		peer    *peer
		headers []string
		want    hostileVerdict
	}{
		"the harness's token at an agent's certificate": {agent, svid(hostileHarness), invalid("disagrees with the certificate")},
		"an agent's token at the harness's certificate": {harness, svid(hostileAgent), invalid("disagrees with the certificate")},
		"the harness's OIDC token at an agent":          {agent, hostileBearers(f.idp.token(nil)), invalid("disagrees with the certificate")},
		"the harness's OIDC token at the harness":       {harness, hostileBearers(f.idp.token(nil)), invalid("disagrees with the certificate")},
		"an OIDC token whose sub is the certificate's": {agent, hostileBearers(f.idp.token(func(h *hostileToken) {
			h.claims["sub"] = hostileAgent
		})), invalid("disagrees with the certificate")},
		"a forged token at the harness": {harness, hostileBearers(newHostileIssuer(t, f.svid.claims).token(nil)), invalid("signature")},
		"an expired one at the harness": {harness, hostileBearers(f.svid.token(func(h *hostileToken) {
			h.claims["exp"] = time.Now().Unix() - 31
		})), invalid("expired")},
		"no bearer at the harness": {harness, []string{"authorization", "Basic aGFybmVzczo="}, invalid("no bearer")},
		"an empty one":             {harness, []string{"authorization", ""}, invalid("no bearer")},
	} {
		t.Run(name, func(t *testing.T) { f.refuses(t, test.peer, test.want, test.headers...) })
	}
	t.Run("what agrees", func(t *testing.T) {
		f.answers(t, harness, "", svid(hostileHarness)...)
		f.answers(t, agent, "AUTHORITY_NOT_PERMITTED", svid(hostileAgent)...)
		f.answers(t, f.peer(t, nil), "", hostileBearers(f.idp.token(nil))...)
		f.answers(t, stranger, "SCOPE_NOT_PERMITTED")
		f.answers(t, harness, "") // and nothing of the others stays on the connection
	})
	f.isEmpty(t)
}

// What names a caller behind a proxy is believed from that proxy alone, and in one form alone.
func TestHostileXFCC(t *testing.T) {
	f := hostileServe(t, true, server.Config{})
	xfcc := func(values ...string) (headers []string) {
		for _, value := range values {
			headers = append(headers, "x-forwarded-client-cert", value)
		}
		return headers
	}
	proxy, gateway := f.peer(t, f.leaf(hostileProxy)), f.peer(t, f.leaf(hostileGateway))
	anyone, harness, agent := f.peer(t, nil), f.peer(t, f.leaf(hostileHarness)), f.peer(t, f.leaf(hostileAgent))
	below := f.peer(t, f.leaf(hostileProxy+"/below"))
	token := hostileBearers(f.idp.token(nil))
	invalid := func(check string) hostileVerdict { return hostileVerdict{"IDENTITY_INVALID", "xfcc", check} }
	const one = "URI=" + hostileAgent
	for name, test := range map[string]struct {
		peer    *peer
		headers []string
		want    hostileVerdict
	}{
		"absent":                       {proxy, nil, hostileMissing},
		"under another name":           {proxy, []string{"x-forwarded-client-cert-bin", "VVJJ", "x_forwarded_client_cert", one, "x-forwarded-client-certificate", one, "forwarded", one}, hostileMissing},
		"empty":                        {proxy, xfcc(""), invalid("malformed")},
		"twice":                        {proxy, xfcc(one, "URI="+hostileHarness), invalid("several values")},
		"the same twice":               {proxy, xfcc(one, one), invalid("several values")},
		"two elements":                 {proxy, xfcc(one + ",URI=" + hostileHarness), invalid("several elements")},
		"two elements, the last empty": {proxy, xfcc(one + ","), invalid("several elements")},
		"two URIs":                     {proxy, xfcc(one + ";URI=" + hostileHarness), invalid("several URIs")},
		"two in two cases":             {proxy, xfcc(one + ";uRi=" + hostileHarness), invalid("several URIs")},
		"a quote that stays open":      {proxy, xfcc(`Subject="CN=x;` + one), invalid("malformed")},
		"a quote that opens late":      {proxy, xfcc(`Hash=a";` + one), invalid("malformed")},
		"a quote after an escape":      {proxy, xfcc(`Subject="CN=x\";` + one), invalid("malformed")},
		"a URI within quotes":          {proxy, xfcc(`Subject=";URI=` + hostileHarness + `"`), invalid("no URI")},
		"a quoted URI and more":        {proxy, xfcc(`URI="` + hostileAgent + `"x`), invalid("malformed")},
		"no URI":                       {proxy, xfcc("Hash=abc"), invalid("no URI")},
		"an empty URI":                 {proxy, xfcc("URI="), invalid("no URI")},
		"an unknown key":               {proxy, xfcc(one + ";Trust=me"), invalid("unknown key")},
		"white space":                  {proxy, xfcc("URI= " + hostileHarness), invalid("malformed")},
		"another trust domain":         {proxy, xfcc("URI=spiffe://evil.test/agent"), invalid("another trust domain")},
		"no path":                      {proxy, xfcc("URI=spiffe://example.org"), invalid("no SPIFFE ID")},
		"an escape":                    {proxy, xfcc("URI=spiffe://example.org/%68arness"), invalid("no SPIFFE ID")},
		"a token, too":                 {proxy, append(token, xfcc(one)...), hostileVerdict{"IDENTITY_INVALID", "jwt", "not from this proxy"}},
		"a token instead":              {proxy, token, hostileVerdict{"IDENTITY_INVALID", "jwt", "not from this proxy"}},
		"an empty token, too":          {proxy, append(xfcc(one), "authorization", ""), hostileVerdict{"IDENTITY_INVALID", "jwt", "not from this proxy"}},
		"a gateway's":                  {gateway, xfcc(one), invalid("not from this proxy")},
		"a gateway's, beside a token":  {gateway, append(token, xfcc(one)...), invalid("not from this proxy")},
		"a gateway without a token":    {gateway, nil, hostileMissing},
		"nobody's":                     {anyone, xfcc(one), invalid("not from a proxy")},
		"nobody's, beside a token":     {anyone, append(token, xfcc(one)...), invalid("not from a proxy")},
		"an agent's":                   {agent, xfcc("URI=" + hostileHarness), invalid("not from a proxy")},
		"an agent's, with its name":    {agent, xfcc(one), invalid("not from a proxy")},
		"the harness's":                {harness, xfcc(one), invalid("not from a proxy")},
		"one below the proxy's name":   {below, xfcc(one), invalid("not from a proxy")},
	} {
		t.Run(name, func(t *testing.T) { f.refuses(t, test.peer, test.want, test.headers...) })
	}
	t.Run("what holds", func(t *testing.T) {
		f.answers(t, proxy, "AUTHORITY_NOT_PERMITTED", xfcc(one)...)
		f.answers(t, proxy, "SCOPE_NOT_PERMITTED", xfcc("URI="+hostileHarness)...) // the harness's right is its certificate's
		f.answers(t, proxy, "SCOPE_NOT_PERMITTED", xfcc("URI="+hostileProxy)...)
		f.answers(t, gateway, "", token...)
		f.answers(t, below, "SCOPE_NOT_PERMITTED")
	})
	t.Run("in upper case", func(t *testing.T) { // no header of HTTP/2
		p := f.peer(t, f.leaf(hostileProxy))
		a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers", "X-Forwarded-Client-Cert", one)...))
		if a.code() != noCode && a.code() != codes.Unauthenticated {
			t.Errorf("answered with %v", a.header)
		}
	})
	f.isEmpty(t)
}
