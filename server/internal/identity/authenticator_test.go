package identity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// end is the other end of a connection, as its handshake found it.
type end struct {
	caller *identity.Caller
	err    error
	uid    *uint32
	open   bool // plaintext, beyond this machine
}

func (p end) Caller(time.Time) (*identity.Caller, error) { return p.caller, p.err }

func (p end) UnixUser() (uint32, bool) {
	if p.uid == nil {
		return 0, false
	}
	return *p.uid, true
}

func (p end) Private() bool { return !p.open }

func certified(id string) end { return end{caller: spiffe(identity.MTLS, id)} }

// spiffe returns who has the SPIFFE ID id of example.org.
func spiffe(source identity.Source, id string) *identity.Caller {
	return &identity.Caller{Identity: identity.Identity{Source: source, Issuer: "example.org", Name: id}, SPIFFE: true}
}

var errExpired = &identity.InvalidError{Source: identity.MTLS, Check: "expired"}

// known are those that hold. Verify waits for keys with a token "slow".
type known map[string]*identity.Caller

func (t known) Verify(_ context.Context, token string, beforeWait func()) (*identity.Caller, error) {
	if token == "slow" {
		beforeWait()
	}
	if c := t[token]; c != nil {
		return c, nil
	}
	return nil, &identity.InvalidError{Source: identity.JWT, Check: "signature"}
}

var (
	claims = map[string]string{"/tenant": "t"}
	byOIDC = &identity.Caller{
		Identity: identity.Identity{Source: identity.JWT, Issuer: "https://idp.example.org", Name: harness}, Claims: claims,
	}
	bySVID  = &identity.Caller{Identity: spiffe(identity.JWT, harness).Identity, SPIFFE: true, Claims: claims}
	byOther = spiffe(identity.JWT, "spiffe://example.org/ns/b/sa/other")
	// The subject of oidc is a SPIFFE ID by its spelling alone.
	held = known{"oidc": byOIDC, "svid": bySVID, "other": byOther, "slow": byOIDC}
)

// Every combination of what can name a caller. The rule of what is wanted looks at what each of the three
// is, and never at headers: all that is wrong with a combination is listed, and if anything is, the call
// is refused for one of these.
func TestCombinations(t *testing.T) {
	type naming struct {
		kind   string // of a peer: none, certificate, other (than a SPIFFE ID), invalid, proxy
		caller *identity.Caller
	}
	dnsName := &identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "example.org", Name: harness}}
	proxyName := &identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "example.org", Name: proxyID}}
	peers := map[string]struct {
		peer end
		naming
	}{
		"none":                       {end{err: identity.ErrMissing}, naming{kind: "none"}},
		"unix, no proxy":             {end{err: identity.ErrMissing, uid: new(uint32(7))}, naming{kind: "none"}},
		"certificate":                {certified(harness), naming{"certificate", spiffe(identity.MTLS, harness)}},
		"certificate, DNS":           {end{caller: dnsName}, naming{"other", dnsName}},
		"a proxy's ID as a DNS name": {end{caller: proxyName}, naming{"other", proxyName}},
		"invalid":                    {end{err: errExpired}, naming{kind: "invalid"}},
		"invalid, proxy's user":      {end{err: errExpired, uid: new(uint32(101))}, naming{kind: "invalid"}},
		"proxy, SPIFFE":              {certified(proxyID), naming{kind: "proxy"}},
		"proxy, user":                {end{err: identity.ErrMissing, uid: new(uint32(101))}, naming{kind: "proxy"}},
		"proxy, user, certificate":   {end{caller: spiffe(identity.MTLS, harness), uid: new(uint32(101))}, naming{kind: "proxy"}},
		"not private":                {end{err: identity.ErrMissing, open: true}, naming{kind: "none"}},
	}
	bearers := map[string]struct {
		values []string
		caller *identity.Caller // nil: none, or an invalid one
	}{
		"none":               {nil, nil},
		"no values":          {[]string{}, nil},
		"OIDC":               {[]string{"Bearer oidc"}, byOIDC},
		"SVID, same":         {[]string{"Bearer svid"}, bySVID},
		"SVID, other":        {[]string{"Bearer other"}, byOther},
		"lower case":         {[]string{"bearer svid"}, bySVID},
		"upper case":         {[]string{"BEARER svid"}, bySVID},
		"invalid":            {[]string{"Bearer forged"}, nil},
		"two":                {[]string{"Bearer svid", "Bearer svid"}, nil},
		"two, one empty":     {[]string{"", "Bearer svid"}, nil},
		"two, joined":        {[]string{"Bearer svid,Bearer svid"}, nil},
		"two, joined spaced": {[]string{"Bearer svid, Bearer svid"}, nil},
		"Basic":              {[]string{"Basic svid"}, nil},
		"longer scheme":      {[]string{"Bearers svid"}, nil},
		"Kelvin":             {[]string{"Bearer sv\u212ad"}, nil},
		"no token":           {[]string{"Bearer"}, nil},
		"no token, space":    {[]string{"Bearer "}, nil},
		"no scheme":          {[]string{"svid"}, nil},
		"no scheme, space":   {[]string{" svid"}, nil},
		"two spaces":         {[]string{"Bearer  svid"}, nil},
		"tab":                {[]string{"Bearer\tsvid"}, nil},
		"space before":       {[]string{" Bearer svid"}, nil},
		"space after":        {[]string{"Bearer svid "}, nil},
		"empty":              {[]string{""}, nil},
	}
	fromXFCC := spiffe(identity.XFCC, harness)
	xfccs := map[string]struct {
		values []string
		caller *identity.Caller
	}{
		"none":      {nil, nil},
		"no values": {[]string{}, nil},
		"ok":        {[]string{"URI=" + harness}, fromXFCC},
		"bad":       {[]string{"URI=" + harness + ";"}, nil},
		"twice":     {[]string{"URI=" + harness, "URI=" + harness}, nil},
		"empty":     {[]string{""}, nil},
	}
	for _, names := range []identity.Source{identity.XFCC, identity.JWT} {
		for _, issuers := range []bool{false, true} {
			a := identity.NewAuthenticator(held)
			a.Configure([]identity.Proxy{
				{SPIFFEID: proxyID, Names: names, TrustDomains: []string{"example.org"}},
				{UnixUID: new(uint32(101)), Names: names, TrustDomains: []string{"example.org"}},
			}, issuers)
			for peerName, p := range peers {
				for bearerName, b := range bearers {
					for headerName, x := range xfccs {
						cell := fmt.Sprintf("proxies' %s, issuers %v: %s × %s × %s", names, issuers, peerName, bearerName, headerName)
						bearerThere, xfccThere := len(b.values) > 0, len(x.values) > 0

						var wrong []identity.Source
						add := func(is bool, source identity.Source) {
							if is {
								wrong = append(wrong, source)
							}
						}
						add(p.kind == "invalid", identity.MTLS)
						add(xfccThere && x.caller == nil, identity.XFCC)
						add(xfccThere && (p.kind != "proxy" || names != identity.XFCC), identity.XFCC)
						add(bearerThere && b.caller == nil, identity.JWT)
						add(bearerThere && !issuers, identity.JWT)
						add(bearerThere && p.peer.open, identity.JWT)
						add(bearerThere && p.kind == "proxy" && names != identity.JWT, identity.JWT)
						add(bearerThere && p.kind == "certificate" && b.caller != bySVID, identity.JWT)
						add(bearerThere && p.kind == "other", identity.JWT)

						var want *identity.Caller
						switch {
						case p.kind == "proxy" && names == identity.XFCC:
							want = x.caller
						case p.kind == "proxy", p.kind == "none":
							want = b.caller
						case p.kind == "certificate" && bearerThere:
							want = &identity.Caller{Identity: p.caller.Identity, SPIFFE: true, Claims: claims}
						default:
							want = p.caller
						}

						header := metadata.MD{"user-agent": {"x"}, "x-forwarded-client-cert-bin": {"URI=" + proxyID}}
						if b.values != nil {
							header["authorization"] = b.values
						}
						if x.values != nil {
							header[xfccName] = x.values
						}
						got, err := a.Authenticate(t.Context(), p.peer, header, func() { t.Error(cell + ": waits") })
						invalid, isInvalid := errors.AsType[*identity.InvalidError](err)
						switch {
						case len(wrong) > 0:
							if got != nil || !isInvalid || !slices.Contains(wrong, invalid.Source) {
								t.Errorf("%s: %v, %v, want a refusal for %v", cell, got, err, wrong)
							}
						case want == nil:
							if got != nil || !errors.Is(err, identity.ErrMissing) {
								t.Errorf("%s: %v, %v, want %v", cell, got, err, identity.ErrMissing)
							}
						case err != nil || !cmp.Equal(got, want):
							t.Errorf("%s: %v, %v, want %v", cell, got, err, want)
						}
					}
				}
			}
		}
	}
	if bySVID.Source != identity.JWT || spiffe(identity.MTLS, harness).Claims != nil {
		t.Error("a caller was changed")
	}
}

// The cells that matter most, by hand.
func TestRefusals(t *testing.T) {
	proxies := []identity.Proxy{
		{SPIFFEID: proxyID, Names: identity.XFCC, TrustDomains: []string{"example.org"}},
		{UnixUID: new(uint32(0)), Names: identity.JWT},
	}
	good := "URI=" + harness
	for name, test := range map[string]struct {
		proxies []identity.Proxy
		issuers bool
		peer    end
		header  metadata.MD
		want    string
	}{
		"XFCC straight to the port":          {proxies, true, end{err: identity.ErrMissing}, metadata.Pairs(xfccName, good), "xfcc: not from a proxy"},
		"XFCC with a certificate":            {proxies, true, certified(harness), metadata.Pairs(xfccName, good), "xfcc: not from a proxy"},
		"XFCC where there is no proxy":       {nil, true, certified(proxyID), metadata.Pairs(xfccName, good), "xfcc: not from a proxy"},
		"XFCC from an expired proxy":         {proxies, true, end{err: errExpired}, metadata.Pairs(xfccName, good), "mtls: expired"},
		"XFCC and JWT":                       {proxies, true, certified(proxyID), metadata.Pairs(xfccName, good, "authorization", "Bearer svid"), "jwt: not from this proxy"},
		"XFCC where JWT names":               {proxies, true, end{err: identity.ErrMissing, uid: new(uint32(0))}, metadata.Pairs(xfccName, good), "xfcc: not from this proxy"},
		"a proxy for itself":                 {proxies, true, certified(proxyID), nil, "no identity"},
		"a JWT proxy for itself":             {proxies, true, end{caller: spiffe(identity.MTLS, harness), uid: new(uint32(0))}, nil, "no identity"},
		"a bearer where none is believed":    {proxies, false, certified(harness), metadata.Pairs("authorization", "Bearer svid"), "jwt: not configured"},
		"a bearer that all can read":         {proxies, true, end{err: identity.ErrMissing, open: true}, metadata.Pairs("authorization", "Bearer svid"), "jwt: plaintext"},
		"a bearer of another":                {proxies, true, certified(harness), metadata.Pairs("authorization", "Bearer other"), "jwt: disagrees with the certificate"},
		"a bearer that is spelt the same":    {proxies, true, certified(harness), metadata.Pairs("authorization", "Bearer oidc"), "jwt: disagrees with the certificate"},
		"a bearer and an expired one":        {proxies, true, end{err: errExpired}, metadata.Pairs("authorization", "Bearer svid"), "mtls: expired"},
		"a forged bearer with a certificate": {proxies, true, certified(harness), metadata.Pairs("authorization", "Bearer forged"), "jwt: signature"},
		"two bearers":                        {proxies, true, certified(harness), metadata.Pairs("authorization", "Bearer svid", "authorization", "Bearer svid"), "jwt: several values"},
		"nothing":                            {proxies, true, end{err: identity.ErrMissing}, nil, "no identity"},
	} {
		a := identity.NewAuthenticator(held)
		a.Configure(test.proxies, test.issuers)
		if got, err := a.Authenticate(t.Context(), test.peer, test.header, nil); got != nil || err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, %v, want %s", name, got, err, test.want)
		}
	}
}

// An authenticator that nobody has configured believes certificates alone.
func TestNotConfigured(t *testing.T) {
	a := identity.NewAuthenticator(held)
	if got, err := a.Authenticate(t.Context(), certified(harness), nil, nil); err != nil || got.Name != harness {
		t.Errorf("%v, %v", got, err)
	}
	for name, header := range map[string]metadata.MD{
		"jwt: not configured":    metadata.Pairs("authorization", "Bearer svid"),
		"xfcc: not from a proxy": metadata.Pairs(xfccName, "URI="+harness),
	} {
		if got, err := a.Authenticate(t.Context(), certified(harness), header, nil); got != nil || err == nil || err.Error() != name {
			t.Errorf("%v, %v, want %s", got, err, name)
		}
	}
}

// Who verifies tokens says that it waits.
func TestBeforeWait(t *testing.T) {
	a := identity.NewAuthenticator(held)
	a.Configure(nil, true)
	waits := 0
	got, err := a.Authenticate(t.Context(), end{err: identity.ErrMissing}, metadata.Pairs("authorization", "Bearer slow"), func() { waits++ })
	if err != nil || got != byOIDC || waits != 1 {
		t.Errorf("%v, %v, after %d waits, want %v after one", got, err, waits, byOIDC)
	}
}

// A proxy that is one no longer is not believed in the next call, and no call sees half of a
// configuration.
func TestConfigureWhileCallsRun(t *testing.T) {
	a := identity.NewAuthenticator(held)
	header := metadata.Pairs(xfccName, "URI="+harness)
	proxies := []identity.Proxy{{SPIFFEID: proxyID, Names: identity.XFCC, TrustDomains: []string{"example.org"}}}
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 1000 {
				got, err := a.Authenticate(t.Context(), certified(proxyID), header, nil)
				switch {
				case err == nil && got.Name == harness:
				case err != nil && err.Error() == "xfcc: not from a proxy":
				default:
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
	for range 100 {
		a.Configure(proxies, true)
		a.Configure(nil, false)
	}
	calls.Wait()
	if got, err := a.Authenticate(t.Context(), certified(proxyID), header, nil); err == nil {
		t.Errorf("a proxy that is one no longer names %v", got)
	}
}
