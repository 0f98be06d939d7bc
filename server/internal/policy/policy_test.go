package policy_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
	"github.com/promptassembly/promptassembly/server/internal/policy"
)

const (
	workspaceOverride = pb.Authority_AUTHORITY_WORKSPACE_OVERRIDE
	currentTurn       = pb.Authority_AUTHORITY_CURRENT_TURN
	base              = pb.SegmentKind_SEGMENT_KIND_BASE_INSTRUCTIONS
	tools             = pb.SegmentKind_SEGMENT_KIND_TOOL_DESCRIPTIONS
	mode              = pb.SegmentKind_SEGMENT_KIND_WORKING_MODE
	custom            = pb.SegmentKind_SEGMENT_KIND_CUSTOM
	idp               = "https://idp.example.org"
)

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func example(t testing.TB) *policy.Policy {
	t.Helper()
	text, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// spiffe is a caller by a SPIFFE ID of example.org.
func spiffe(source identity.Source, path string) *identity.Caller {
	return &identity.Caller{
		Identity: identity.Identity{Source: source, Issuer: "example.org", Name: "spiffe://example.org" + path},
		SPIFFE:   true,
	}
}

// token is a caller by a token of the identity provider, with the claim /tenant unless it is empty.
func token(subject, tenant string) *identity.Caller {
	c := &identity.Caller{Identity: identity.Identity{Source: identity.JWT, Issuer: idp, Name: subject}}
	if tenant != "" {
		c.Claims = map[string]string{"/tenant": tenant}
	}
	return c
}

func TestSources(t *testing.T) {
	p := parse(t, `
version: 1
issuers:
  - issuer: https://idp.example.org
    keys: {url: "http://127.0.0.1:8080/jwks", bearer_file: /var/run/token}
    audiences: [a, b]
    several_audiences: true
    algorithms: [RS256, EdDSA]
    claims: [/tenant, /kubernetes.io/namespace]
  - {spiffe_trust_domain: example.org, keys: {file: /etc/bundle.jwks}, audiences: [a]}
proxies:
  - {peer: {spiffe: "spiffe://example.org/envoy"}, caller: xfcc, trust_domains: [example.org, other.org]}
  - {peer: {unix_uid: 101}, caller: jwt}
callers:
  - {name: nobody, identities: [{source: mtls, trust_domain: corp, name: nobody.example.org}]}
`)
	if diff := cmp.Diff([]identity.Issuer{
		{
			Name: idp, Keys: jwks.Location{URL: "http://127.0.0.1:8080/jwks", BearerFile: "/var/run/token"}, Audiences: []string{"a", "b"},
			SeveralAudiences: true, Algorithms: []string{"RS256", "EdDSA"}, Claims: []string{"/tenant", "/kubernetes.io/namespace"},
		},
		{Name: "example.org", SPIFFE: true, Keys: jwks.Location{File: "/etc/bundle.jwks"}, Audiences: []string{"a"}},
	}, p.Issuers()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]identity.Proxy{
		{SPIFFEID: "spiffe://example.org/envoy", Names: identity.XFCC, TrustDomains: []string{"example.org", "other.org"}},
		{UnixUID: new(uint32(101)), Names: identity.JWT},
	}, p.Proxies()); diff != "" {
		t.Error(diff)
	}
}

func TestWhichEntry(t *testing.T) {
	p := parse(t, `
version: 1
issuers:
  - {issuer: "https://idp.example.org", keys: {file: /k}, audiences: [a]}
  - {issuer: "https://other.example.org", keys: {file: /k}, audiences: [a]}
  - {spiffe_trust_domain: example.org, keys: {file: /k}, audiences: [a]}
proxies:
  - {peer: {unix_uid: 0}, caller: xfcc, trust_domains: [example.org]}
callers:
  - {name: first, identities: [{source: mtls, spiffe: "spiffe://example.org/ns/a/sa/*"}]}
  - {name: second, identities: [{source: mtls, spiffe: "spiffe://example.org/ns/*/sa/{name}"}]}
  - {name: exact, identities: [{source: mtls, spiffe: "spiffe://example.org/ns/a/sa/x"}]}
  - {name: by proxy, identities: [{source: xfcc, spiffe: "spiffe://example.org/ns/a/sa/x"}]}
  - {name: by JWT-SVID, identities: [{source: jwt, spiffe: "spiffe://example.org/ns/a/sa/x"}]}
  - {name: by token, identities: [{source: jwt, issuer: "https://idp.example.org", subject: "spiffe://example.org/ns/a/sa/x"}]}
  - {name: by DNS name, identities: [{source: mtls, trust_domain: example.org, name: x.example.org}]}
`)
	x := "/ns/a/sa/x"
	for _, test := range []struct {
		name   string
		caller *identity.Caller
		want   string // empty: not named
	}{
		{"exact wins over patterns before it", spiffe(identity.MTLS, x), "exact"},
		{"the first pattern wins", spiffe(identity.MTLS, "/ns/a/sa/y"), "first"},
		{"the second pattern", spiffe(identity.MTLS, "/ns/b/sa/x"), "second"},
		{"a segment more", spiffe(identity.MTLS, "/ns/a/sa/x/y"), ""},
		{"a segment less", spiffe(identity.MTLS, "/ns/a/sa"), ""},
		{"a segment that only begins so", spiffe(identity.MTLS, "/nsx/a/sa/x"), ""},
		{"the same name by XFCC", spiffe(identity.XFCC, x), "by proxy"},
		{"no pattern of XFCC", spiffe(identity.XFCC, "/ns/a/sa/y"), ""},
		{"the same name by JWT-SVID", spiffe(identity.JWT, x), "by JWT-SVID"},
		{"a subject that looks like it", token("spiffe://example.org/ns/a/sa/x", ""), "by token"},
		{"the subject of another issuer", &identity.Caller{Identity: identity.Identity{Source: identity.JWT, Issuer: "https://other.example.org", Name: "spiffe://example.org/ns/a/sa/x"}}, ""},
		{"another trust domain, the same path", &identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "other.org", Name: "spiffe://other.org/ns/a/sa/x"}, SPIFFE: true}, ""},
		{"a trust domain that only begins so", &identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "example.orga", Name: "spiffe://example.orga/ns/a/sa/x"}, SPIFFE: true}, ""},
		{"not verified as a SPIFFE ID", &identity.Caller{Identity: spiffe(identity.MTLS, x).Identity}, ""},
		{"a DNS name", &identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "example.org", Name: "x.example.org"}}, "by DNS name"},
		{"a DNS name of another trust domain", &identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "corp", Name: "x.example.org"}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if r := p.Rights(test.caller); r != nil {
				got = r.Rule()
			}
			if got != test.want {
				t.Errorf("entry %q, want %q", got, test.want)
			}
		})
	}
}

func TestRights(t *testing.T) {
	p := example(t)
	type claims struct{ Workspace, Current, Base, Tools, Mode, Custom bool }
	all := &claims{Workspace: true, Current: true, Base: true, Tools: true, Mode: true}
	shared := &claims{Workspace: true, Base: true}
	none := &claims{}
	harness := spiffe(identity.MTLS, "/ns/prod/sa/harness")
	worker := spiffe(identity.JWT, "/ns/prod/sa/worker")
	for _, test := range []struct {
		name   string
		caller *identity.Caller
		scope  string
		want   *claims // nil: may not speak for it
	}{
		{"exact", harness, "user:mei", all},
		{"exact and more", harness, "user:mei2", nil},
		{"below a prefix", harness, "team/a/1", shared},
		{"far below a prefix", harness, "team/a/1/2", shared},
		{"the prefix itself", harness, "team/a", nil},
		{"the prefix and the separator", harness, "team/a/", nil},
		{"a sibling", harness, "team/ab", nil},
		{"below a sibling", harness, "team/ab/1", nil},
		{"nothing", harness, "", nil},
		{"a claim", token("agent", "acme"), "tenant/acme/mei", none},
		{"another claim", token("agent", "acme"), "tenant/other/mei", nil},
		{"no claim", token("agent", ""), "tenant//mei", nil},
		{"a claim with the separator", token("agent", "acme/mei"), "tenant/acme/mei/1", nil},
		{"a segment", worker, "namespace/prod", none},
		{"below a segment", worker, "namespace/prod/1", none},
		{"another segment", worker, "namespace/dev", nil},
		{"longer than the segment", worker, "namespace/production", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := p.Rights(test.caller)
			c, ok := r.For(test.scope)
			var got *claims
			if ok {
				got = &claims{
					c.MayAssert(workspaceOverride), c.MayAssert(currentTurn),
					c.MayRequire(base), c.MayRequire(tools), c.MayRequire(mode), c.MayRequire(custom),
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}

	r := p.Rights(harness)
	if diff := cmp.Diff(policy.Bounds{
		MinScore: new(0.2), TopK: new(uint32(20)), MaxChars: new(uint32(6000)), MaxTokens: new(uint32(2000)),
	}, r.Bounds()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]pb.SegmentKind{base}, r.Mandatory()); diff != "" {
		t.Error(diff)
	}
	if !r.Unscoped().MayAssert(currentTurn) || !r.Unscoped().MayRequire(tools) {
		t.Error("a prompt without memory has less than the caller's own rights")
	}
	if r := p.Rights(worker); r.Bounds() != (policy.Bounds{}) || r.Mandatory() != nil {
		t.Error("bounds, or mandatory kinds, that nobody set")
	}
}

func TestClaimsOfNothing(t *testing.T) {
	var c policy.Claims
	for _, a := range []pb.Authority{0, 1} {
		if !c.MayAssert(a) {
			t.Errorf("%v is not permitted", a)
		}
	}
	for _, a := range []pb.Authority{2, 3, 4, 31, 32, 33, -1, 1<<31 - 1, -1 << 31} {
		if c.MayAssert(a) {
			t.Errorf("%v is permitted", a)
		}
	}
	for kind := pb.SegmentKind(-40); kind < 40; kind++ {
		if c.MayRequire(kind) {
			t.Errorf("%v may be required", kind)
		}
	}
	some, _ := parse(t, `
version: 1
callers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}], required: [custom], scopes: [{exact: s}]}]
`).Rights(&identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "d", Name: "n"}}).For("s")
	if !some.MayRequire(custom) || !some.MayRequire(pb.SegmentKind_SEGMENT_KIND_UNSPECIFIED) {
		t.Error("a kind that is not set is custom")
	}
}

// A rule for any scope covers what none before it does.
func TestAnyScope(t *testing.T) {
	p := parse(t, caller("scopes: [{exact: a, authorities: [workspace_override]}, {any: true, authorities: [current_turn]}]"))
	r := p.Rights(&identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "d", Name: "n"}})
	if r == nil {
		t.Fatal("the caller is not named")
	}
	for scope, asserts := range map[string]pb.Authority{"a": workspaceOverride, "b": currentTurn, "a/b": currentTurn} {
		c, ok := r.For(scope)
		if !ok || !c.MayAssert(asserts) || c.MayAssert(workspaceOverride+currentTurn-asserts) {
			t.Errorf("%s: permitted %t, and not just %v", scope, ok, asserts)
		}
	}
}
