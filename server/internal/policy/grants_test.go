package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/internal/grants"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
	"github.com/promptassembly/promptassembly/server/internal/policy"
)

func TestGrants(t *testing.T) {
	if diff := cmp.Diff([]grants.Issuer{{
		Name: "https://coordinator.example.org", Keys: jwks.Location{File: "/etc/promptd/coordinator.jwks"}, Audiences: []string{"prompt-assembly"},
	}}, example(t).Grants()); diff != "" {
		t.Error(diff)
	}
}

// One name in two sources shares no right.
func TestAGrantsIssuerIsNobodyElse(t *testing.T) {
	p := example(t)
	const name = "https://coordinator.example.org"
	if r := p.Rights(identity.GrantIssuer(name)); r == nil || r.Rule() != "coordinator" {
		t.Errorf("%v", r)
	}
	for _, other := range []identity.Identity{
		{Source: identity.JWT, Issuer: name, Name: name},
		{Source: identity.MTLS, Issuer: name, Name: name},
		{Source: identity.Grant, Issuer: name, Name: "spiffe://example.org/ns/a/sa/harness"},
		{Source: identity.Grant, Issuer: "example.org", Name: "spiffe://example.org/ns/a/sa/harness"},
	} {
		if r := p.Rights(&identity.Caller{Identity: other}); r != nil {
			t.Errorf("%v is %s", other, r.Rule())
		}
	}
}

func TestMayRelay(t *testing.T) {
	p := parse(t, granted(`[{issuer: i, scopes: [{exact: "a"}, {prefix: "b/{ns}", separator: /}]}, {issuer: j}]`))
	asserted := func(scope string) *policy.Asserted { return &policy.Asserted{Memory: scope != "", Scope: scope} }
	relay := p.Rights(spiffe(identity.MTLS, "/x"))
	for _, test := range []struct {
		issuer, scope string
		want          bool
	}{
		{"i", "a", true},
		{"i", "a/b", false},
		{"i", "b/x/1", true},
		{"i", "b/x", false},
		{"i", "b/y/1", false},
		{"i", "", true},
		{"j", "", true},
		{"j", "a", false},
		{"k", "", false},
		{"", "", false},
	} {
		if got := relay.MayRelay(test.issuer, asserted(test.scope)); got != test.want {
			t.Errorf("of %s for %q: %t", test.issuer, test.scope, got)
		}
	}
	if (*policy.Rights)(nil).MayRelay("i", asserted("a")) || p.Rights(identity.GrantIssuer("i")).MayRelay("i", asserted("a")) {
		t.Error("who may relay nothing may")
	}
	if p.Rights(spiffe(identity.MTLS, "/x")).Judge(asserted("a")) == nil {
		t.Error("a relay may assert what it may carry")
	}
}

// granted makes a file with two issuers of grants and, in line 8, who may relay them.
func granted(relays string) string {
	return `version: 1
grants:
  - {issuer: i, keys: {file: /k}, audiences: [a]}
  - {issuer: j, keys: {url: "https://j/k"}, audiences: [a, b]}
callers:
  - {name: signer, identities: [{source: grant, issuer: i}, {source: grant, issuer: j}]}
  - {name: relay, identities: [{source: mtls, spiffe: "spiffe://example.org/{ns}"}],
     may_relay: ` + relays + `}
`
}

var grantFormFaults = []fault{
	{"no relays", granted("[]"), []string{
		"3: grants[0].issuer: its grants can never count: no caller may_relay them",
		"4: grants[1].issuer: its grants can never count: no caller may_relay them",
		"8: callers[1].may_relay: is an empty list; must hold issuers of grants",
	}},
	{"a relay of nobody", granted("[{scopes: []}, {issuer: i}, {issuer: j}]"), []string{"8: callers[1].may_relay[0]: issuer is missing"}},
	{"what a relay asserts", granted("[{issuer: i, scopes: [{any: true, authorities: [current_turn]}]}, {issuer: j}]"), []string{
		"8: callers[1].may_relay[0].scopes[0].authorities: there is no such key; there are any, exact, prefix, separator",
	}},
	{"an issuer's subject", strings.Replace(granted("[{issuer: i}, {issuer: j}]"), "issuer: i}, {s", "issuer: i, subject: s}, {s", 1), []string{
		"3: grants[0].issuer: its grants can never count: no caller has the identity {source: grant, issuer: i}",
		"6: callers[0].identities[0]: an identity by grant must hold source and issuer, and nothing else",
	}},
	{"no audiences", strings.Replace(granted("[{issuer: i}, {issuer: j}]"), ", audiences: [a]", "", 1), []string{
		"3: grants[0]: audiences is missing",
		`6: callers[0].identities[0].issuer: no grant can prove it: "i" is not among grants`,
		`8: callers[1].may_relay[0].issuer: there are no grants to carry: "i" is not among grants`,
	}},
}

var grantMeaningFaults = []fault{
	{"an issuer twice", strings.Replace(granted("[{issuer: i}, {issuer: j}]"), "issuer: j, keys", "issuer: i, keys", 1), []string{
		`4: grants[1].issuer: "i" stands in line 3 already; must stand once`,
		`6: callers[0].identities[1].issuer: no grant can prove it: "j" is not among grants`,
		`8: callers[1].may_relay[1].issuer: there are no grants to carry: "j" is not among grants`,
	}},
	{"an issuer that is no caller", strings.Replace(granted("[{issuer: i}, {issuer: j}]"), ", {source: grant, issuer: j}", "", 1), []string{
		"4: grants[1].issuer: its grants can never count: no caller has the identity {source: grant, issuer: j}",
	}},
	{"an issuer that nobody carries", granted("[{issuer: i}]"), []string{"4: grants[1].issuer: its grants can never count: no caller may_relay them"}},
	{"carried twice", granted("[{issuer: i}, {issuer: i}, {issuer: j}]"), []string{`8: callers[1].may_relay[1]: "i" stands in line 8 already; must stand once`}},
	{"a scope that is covered", granted("[{issuer: i, scopes: [{any: true}, {exact: a}]}, {issuer: j}]"), []string{
		"8: callers[1].may_relay[0].scopes[1].exact: decides nothing: the scope in line 8 covers all of it",
	}},
	{"a claim of a certificate", granted("[{issuer: i, scopes: [{exact: '{claim:/a}', separator: /}]}, {issuer: j}]"), []string{
		"8: callers[1].may_relay[0].scopes[0].exact: {claim:/a} has no value for the identity in line 7, which comes by no token",
	}},
}
