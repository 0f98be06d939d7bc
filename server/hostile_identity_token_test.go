package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// Every forged token is refused by its headers alone.
func TestHostileTokens(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	var err error
	if f.idp.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	f.idp.write(f.dir, "idp.jwks")
	p := f.peer(t, nil)
	withRSA := func(h *hostileToken) { h.header["alg"], h.header["kid"], h.sign = "RS256", "rsa", f.idp.signRS256 }
	eventually(t, "the server has the keys", func() bool {
		a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers", hostileBearers(f.idp.token(withRSA))...)...))
		_ = f.nextCall(t)
		return a.code() != codes.Unauthenticated
	})
	public, err := x509.MarshalPKIXPublicKey(f.idp.rsa.Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	mallory := newHostileIssuer(t, f.idp.claims)
	own := jose.JSONWebKey{Key: mallory.ec.Public(), KeyID: "ec"}
	header := func(name string, value any) func(*hostileToken) {
		return func(h *hostileToken) { h.header[name] = value }
	}
	claim := func(name string, value any) func(*hostileToken) {
		return func(h *hostileToken) { h.claims[name] = value }
	}
	without := func(name string) func(*hostileToken) {
		return func(h *hostileToken) { delete(h.claims, name) }
	}
	now := time.Now().Unix()
	for name, test := range map[string]struct {
		token string
		check string
	}{
		"alg none": {f.idp.token(func(h *hostileToken) {
			h.header["alg"], h.sign = "none", func([]byte) []byte { return nil }
		}), "algorithm"},
		"alg nOnE with a signature": {f.idp.token(header("alg", "nOnE")), "algorithm"},
		"no alg":                    {f.idp.token(func(h *hostileToken) { delete(h.header, "alg") }), "algorithm"},
		"no signature": {f.idp.token(func(h *hostileToken) {
			h.sign = func([]byte) []byte { return nil }
		}), "signature"},
		"HS256 by the public key in PEM": {f.idp.token(func(h *hostileToken) {
			h.header["alg"], h.header["kid"], h.sign = "HS256", "rsa", hostileHS256(publicPEM)
		}), "algorithm"},
		"HS256 by the public key in DER": {f.idp.token(func(h *hostileToken) {
			h.header["alg"], h.header["kid"], h.sign = "HS256", "rsa", hostileHS256(public)
		}), "algorithm"},
		"RS256 of a key for ES256": {f.idp.token(header("alg", "RS256")), "algorithm"},
		"ES256 of a key for RS256": {f.idp.token(header("kid", "rsa")), "algorithm"},
		"PS256, which is not listed": {f.idp.token(func(h *hostileToken) {
			withRSA(h)
			h.header["alg"] = "PS256"
		}), "algorithm"},
		"a key of its own":            {mallory.token(header("jwk", own)), "header"},
		"a key of its own, unmarked":  {mallory.token(nil), "signature"},
		"a URL of its own keys":       {mallory.token(header("jku", "http://"+f.address+"/jwks")), "header"},
		"a URL of its certificate":    {mallory.token(header("x5u", "http://"+f.address)), "header"},
		"its certificate":             {mallory.token(header("x5c", []string{"MIIB"})), "header"},
		"crit":                        {f.idp.token(header("crit", []string{"exp"})), "header"},
		"an empty crit":               {f.idp.token(header("crit", []string{})), "header"},
		"an unencoded payload":        {f.idp.token(header("b64", false)), "header"},
		"compression":                 {f.idp.token(header("zip", "DEF")), "header"},
		"another type":                {f.idp.token(header("typ", "logout+jwt")), "type"},
		"a kid that is a path":        {f.idp.token(header("kid", "../../../../dev/null")), "unknown key"},
		"a kid that is a query":       {f.idp.token(header("kid", "' UNION SELECT 'key")), "unknown key"},
		"a kid of 257 bytes":          {f.idp.token(header("kid", strings.Repeat("k", 257))), "key id"},
		"a kid that is no text":       {f.idp.token(header("kid", []string{"ec"})), "key id"},
		"no kid of two keys":          {f.idp.token(func(h *hostileToken) { delete(h.header, "kid") }), "key id"},
		"no exp":                      {f.idp.token(without("exp")), "expiry"},
		"an exp that is a text":       {f.idp.token(claim("exp", "9999999999")), "expiry"},
		"an exp beyond all time":      {f.idp.token(claim("exp", 1e300)), "expiry"},
		"expired by 31 s":             {f.idp.token(claim("exp", now-31)), "expired"},
		"not valid for 61 s":          {f.idp.token(claim("nbf", now+61)), "not yet valid"},
		"issued in 61 s":              {f.idp.token(claim("iat", now+61)), "not yet valid"},
		"another audience":            {f.idp.token(claim("aud", "billing")), "audience"},
		"an audience that begins so":  {f.idp.token(claim("aud", "prompt-assembly.evil")), "audience"},
		"two audiences":               {f.idp.token(claim("aud", []string{"prompt-assembly", "billing"})), "audience"},
		"no audience":                 {f.idp.token(without("aud")), "audience"},
		"another issuer":              {f.idp.token(claim("iss", "https://evil.test")), "issuer"},
		"an issuer with a slash more": {f.idp.token(claim("iss", "https://idp.test/")), "issuer"},
		"no issuer":                   {f.idp.token(without("iss")), "issuer"},
		"the other issuer's key":      {f.other.token(claim("iss", "https://idp.test")), "signature"},
		"an issuer as a JWT-SVID": {f.idp.token(func(h *hostileToken) {
			delete(h.claims, "iss")
			h.claims["sub"] = hostileHarness
		}), "signature"},
		"a JWT-SVID of a path more":        {f.svid.token(claim("sub", "spiffe://example.org")), "subject"},
		"a JWT-SVID of another domain":     {f.svid.token(claim("sub", "spiffe://evil.test/harness")), "issuer"},
		"a JWT-SVID of an upper-case name": {f.svid.token(claim("sub", "spiffe://EXAMPLE.org/harness")), "issuer"},
		"no subject":                       {f.idp.token(without("sub")), "subject"},
		"a subject with NUL":               {f.idp.token(claim("sub", "harness\x00")), "subject"},
		"a subject that is a list":         {f.idp.token(claim("sub", []string{"harness"})), "subject"},
		"an encrypted token":               {hostileJWE(`{"alg":"RSA-OAEP","enc":"A256GCM"}`), "malformed"},
		"a detached payload": {func() string {
			parts := strings.Split(f.idp.token(nil), ".")
			return parts[0] + ".." + parts[2]
		}(), "malformed"},
		"a duplicate member": {func() string {
			parts := strings.Split(f.idp.token(nil), ".")
			twice := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","alg":"ES256","kid":"ec"}`))
			return twice + "." + parts[1] + "." + parts[2]
		}(), "malformed"},
		"padding": {f.idp.token(nil) + "=", "no bearer"},
	} {
		t.Run(name, func(t *testing.T) {
			f.refuses(t, p, hostileVerdict{"IDENTITY_INVALID", "jwt", test.check}, hostileBearers(test.token)...)
		})
	}
	good := f.idp.token(nil)
	for name, test := range map[string]struct {
		headers []string
		want    hostileVerdict
	}{
		"none at all":            {nil, hostileMissing},
		"two headers":            {hostileBearers(good, good), hostileVerdict{"IDENTITY_INVALID", "jwt", "several values"}},
		"a bad one, then a good": {hostileBearers("x.y.z", good), hostileVerdict{"IDENTITY_INVALID", "jwt", "several values"}},
		"two in one": {
			[]string{"authorization", "Bearer " + good + ", Bearer " + good}, hostileVerdict{"IDENTITY_INVALID", "jwt", "no bearer"},
		},
		"two with a comma":     {hostileBearers(good + "," + good), hostileVerdict{"IDENTITY_INVALID", "jwt", "no bearer"}},
		"an empty header":      {[]string{"authorization", ""}, hostileVerdict{"IDENTITY_INVALID", "jwt", "no bearer"}},
		"another scheme":       {[]string{"authorization", "Basic " + good}, hostileVerdict{"IDENTITY_INVALID", "jwt", "no bearer"}},
		"no scheme":            {[]string{"authorization", good}, hostileVerdict{"IDENTITY_INVALID", "jwt", "no bearer"}},
		"two spaces":           {[]string{"authorization", "Bearer  " + good}, hostileVerdict{"IDENTITY_INVALID", "jwt", "no bearer"}},
		"another header":       {[]string{"proxy-authorization", "Bearer " + good}, hostileMissing},
		"a cookie":             {[]string{"cookie", "authorization=Bearer " + good}, hostileMissing},
		"beside what XFCC has": {append(hostileBearers(good), "x-forwarded-client-cert", "URI="+hostileHarness), hostileVerdict{"IDENTITY_INVALID", "xfcc", "not from a proxy"}},
		"an empty XFCC":        {append(hostileBearers(good), "x-forwarded-client-cert", ""), hostileVerdict{"IDENTITY_INVALID", "xfcc", "not from a proxy"}},
	} {
		t.Run(name, func(t *testing.T) { f.refuses(t, p, test.want, test.headers...) })
	}
	t.Run("what holds", func(t *testing.T) {
		f.answers(t, p, "", hostileBearers(good)...)
		f.answers(t, p, "", hostileBearers(f.idp.token(claim("exp", now-15)))...)
		f.answers(t, p, "", "authorization", "bEARER "+good)
	})
	// Equal subjects are not equal callers.
	t.Run("another's subject", func(t *testing.T) {
		f.answers(t, p, "SCOPE_NOT_PERMITTED", hostileBearers(f.other.token(nil))...)
		f.answers(t, p, "SCOPE_NOT_PERMITTED", hostileBearers(f.other.token(claim("sub", hostileHarness)))...)
		f.answers(t, p, "SCOPE_NOT_PERMITTED", hostileBearers(f.idp.token(claim("sub", hostileHarness)))...)
		f.answers(t, p, "SCOPE_NOT_PERMITTED", hostileBearers(f.svid.token(nil))...) // it is not the certificate
		f.answers(t, p, "AUTHORITY_NOT_PERMITTED", hostileBearers(f.other.token(claim("sub", "agent")))...)
	})
	f.isEmpty(t)
}

// A kid of 1 MiB does not get past the limit of headers; where that is raised, the token is too long.
func TestHostileKeyID(t *testing.T) {
	for name, test := range map[string]struct {
		limit uint32
		want  string
	}{
		"by default":   {0, "closed"},
		"up to 2 MiB":  {2 << 20, "refused"},
		"up to 17 KiB": {17 << 10, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := hostileServe(t, false, server.Config{Limits: server.Limits{HeaderBytes: test.limit}})
			token := f.idp.token(func(h *hostileToken) { h.header["kid"] = strings.Repeat("k", 1<<20) })
			checkGrowth(t, 24, func() {
				p := f.peer(t, nil)
				openInParts(p, headersOf(servicePath+"SelectMemory", hostileBearers(token)...))
				a := p.wait(1)
				switch {
				case test.want == "refused":
					if a.code() != codes.Unauthenticated || hostileReason(a) != "IDENTITY_INVALID" {
						t.Errorf("%v, want IDENTITY_INVALID", a.header)
					}
					if line := f.nextCall(t); line["refused_check"] != "too long" {
						t.Errorf("%v, want one that says too long", line)
					}
				case !p.isEnded() && a.reset != http2.ErrCodeFrameSize:
					t.Errorf("%+v, want no answer", a)
				}
			})
			f.answers(t, f.peer(t, nil), "", hostileBearers(f.idp.token(nil))...)
			f.isEmpty(t)
		})
	}
}

// A token does not travel in plaintext from beyond loopback.
func TestHostileTokenInPlaintext(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || !network.IP.IsGlobalUnicast() || network.IP.To4() == nil {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(network.IP.String(), "0"))
		if err != nil {
			continue
		}
		go func() { _ = f.Serve(listener) }()
		p := dialPeer(t, listener.Addr().String())
		f.refuses(t, p, hostileVerdict{"IDENTITY_INVALID", "jwt", "plaintext"}, hostileBearers(f.idp.token(nil))...)
		f.refuses(t, p, hostileMissing)
		f.answers(t, f.peer(t, nil), "", hostileBearers(f.idp.token(nil))...)
		return
	}
	t.Skip("this machine has no address but loopback")
}

// Once a key is gone from its file, the tokens of it that are remembered are refused.
func TestHostileKeyIsRemoved(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	p := f.peer(t, nil)
	token, others := f.idp.token(nil), f.other.token(func(h *hostileToken) { h.claims["sub"] = "agent" })
	for range 3 { // remembered
		f.answers(t, p, "", hostileBearers(token)...)
		f.answers(t, p, "AUTHORITY_NOT_PERMITTED", hostileBearers(others)...)
	}
	next := newHostileIssuer(t, f.idp.claims)
	next.write(f.dir, "idp.jwks") // with the same ID
	eventually(t, "the token is refused", func() bool {
		a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers", hostileBearers(token)...)...))
		_ = f.nextCall(t)
		return a.code() == codes.Unauthenticated
	})
	f.refuses(t, p, hostileVerdict{"IDENTITY_INVALID", "jwt", "signature"}, hostileBearers(token)...)
	f.answers(t, p, "", hostileBearers(next.token(nil))...)
	f.answers(t, p, "AUTHORITY_NOT_PERMITTED", hostileBearers(others)...)

	testca.Write(t, f.path("idp.jwks"), []byte(`{"keys":[]}`))
	eventually(t, "all are refused", func() bool {
		a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers", hostileBearers(next.token(nil))...)...))
		_ = f.nextCall(t)
		return a.code() == codes.Unauthenticated
	})
	testca.Write(t, f.path("idp.jwks"), f.idp.keys())
	eventually(t, "the first is believed again", func() bool {
		a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers", hostileBearers(token)...)...))
		_ = f.nextCall(t)
		return a.code() != codes.Unauthenticated
	})
}

// A key that is removed while a new policy is read is gone, too.
func TestHostileKeyIsRemovedBesideThePolicy(t *testing.T) {
	f := hostileServe(t, false, server.Config{})
	p := f.peer(t, nil)
	keys := filepath.Join(f.dir, "keys")
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	f.idp.write(keys, "idp.jwks")
	policy := strings.Replace(hostilePolicy, "DIR/idp.jwks", "DIR/keys/idp.jwks", 1)
	for round := range 3 {
		f.rule(t, policy+strings.Repeat("#", round)+"\n")
		if round == 0 {
			eventually(t, "the policy is read", func() bool { return strings.Contains(f.said.String(), "policy reloaded") })
			continue
		}
		time.Sleep(50 * time.Millisecond) // before the policy is read, and too short for the keys to be
		token, next := f.idp.token(nil), newHostileIssuer(t, f.idp.claims)
		next.write(keys, "idp.jwks")
		eventually(t, "the token is refused", func() bool {
			a := p.wait(p.open(true, headersOf(servicePath+"ListTokenizers", hostileBearers(token)...)...))
			return a.code() == codes.Unauthenticated
		})
		f.idp = next
	}
}
