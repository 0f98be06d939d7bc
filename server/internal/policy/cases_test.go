package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/policy"
)

func TestExampleCases(t *testing.T) {
	p := example(t)
	text, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := p.ParseCases(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 24 {
		t.Errorf("%d cases, want 24", len(cases))
	}
	for _, c := range cases {
		if _, denial, passed := c.Run(p); !passed {
			t.Errorf("line %d: %s: expected %s, got %s", c.Line, c.Name, c.Expected(), denial)
		}
	}
}

func TestCases(t *testing.T) {
	p := example(t)
	const harness = "mtls:spiffe://example.org/ns/a/sa/harness"
	for _, test := range []struct{ name, text, want string }{
		{"a scope alone is of memory", "scope: user:mei", "ok"},
		{"a prompt with memory", "scope: user:mei, call: plan_prompt", "MANDATORY_SEGMENT_MISSING: base_instructions"},
		{"a prompt by its segments", "scope: user:mei, required: [working_mode]", "MANDATORY_SEGMENT_MISSING: base_instructions"},
		{"a prompt without memory", "call: plan_prompt, required: [base_instructions]", "ok"},
		{"a blank segment", "blank: [base_instructions]", "MANDATORY_SEGMENT_MISSING: base_instructions"},
		{"a blank segment that is not permitted", "required: [base_instructions], blank: [custom]", "REQUIRED_NOT_PERMITTED: custom"},
		{"the first of two authorities", "scope: team/a/1, authorities: [user_default, current_turn]", "AUTHORITY_NOT_PERMITTED: current_turn"},
		{"a scope that is not its own", "scope: team/a", `SCOPE_NOT_PERMITTED: scope "team/a"`},
		{"a floor", "scope: user:mei, policy: {min_score: 0}", "POLICY_NOT_PERMITTED: min_score, whose bound is 0.2"},
		{"the edge of a floor", "scope: user:mei, policy: {min_score: 0.2}", "ok"},
		{"a budget", "scope: user:mei, policy: {max_chars: 6001}", "POLICY_NOT_PERMITTED: max_chars, whose bound is 6000"},
		{"no budget", "scope: user:mei, policy: {max_chars: unlimited}", "POLICY_NOT_PERMITTED: max_chars, whose bound is 6000"},
		{"tokens", "scope: user:mei, policy: {max_tokens: 2000, top_k: 20}", "ok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cases, err := p.ParseCases([]byte("cases: [{name: n, identity: '" + harness + "', expect: ok, " + strings.ReplaceAll(test.text, "user:mei", "'user:mei'") + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			rights, denial, passed := cases[0].Run(p)
			if got := denial.String(); got != test.want || passed != (test.want == "ok") || rights.Rule() != "harness" {
				t.Errorf("%s (%v), want %s", got, passed, test.want)
			}
		})
	}
	cases, err := p.ParseCases([]byte("cases: [{name: n, identity: 'mtls:d n', expect: ok}]"))
	if err != nil {
		t.Fatal(err)
	}
	if rights, denial, _ := cases[0].Run(p); rights != nil || denial.String() != "SCOPE_NOT_PERMITTED: any request" {
		t.Errorf("%v %s", rights, denial)
	}
}

func TestCaseFaults(t *testing.T) {
	p := example(t)
	for _, test := range []fault{
		{"nothing", "", []string{"0: is empty; must be a mapping of keys to values"}},
		{"no case", "cases: []", []string{"1: cases: is an empty list; must hold cases"}},
		{"no cases", "{}", []string{"1: cases is missing"}},
		{"a case of nothing", "cases: [{}]", []string{"1: cases[0]: name is missing", "1: cases[0]: identity is missing", "1: cases[0]: expect is missing"}},
		{"a name twice", "cases:\n- {name: n, identity: 'mtls:d n', expect: ok}\n- {name: n, identity: 'mtls:d n', expect: ok}", []string{`3: cases[1]: "n" stands in line 2 already; must stand once`}},
		{"a key that is not known", "cases: [{name: n, identity: 'mtls:d n', expect: ok, kinds: []}]", []string{"1: cases[0].kinds: there is no such key; there are name, identity, relay, claims, call, scope, authorities, policy, required, blank, expect"}},
		{"an expectation", "cases: [{name: n, identity: 'mtls:d n', expect: denied}]", []string{`1: cases[0].expect: "denied" is not known; must be ok, GRANT_INVALID, SCOPE_NOT_PERMITTED, AUTHORITY_NOT_PERMITTED, REQUIRED_NOT_PERMITTED, POLICY_NOT_PERMITTED or MANDATORY_SEGMENT_MISSING`}},
		{"a relay of no grant", "cases: [{name: n, identity: 'mtls:d n', relay: 'mtls:d r', expect: ok}]", []string{"1: cases[0].relay: carries a grant, and mtls:d n signs none; its identity must be grant:ISSUER"}},
		{"a relay", "cases: [{name: n, identity: 'grant:i', relay: r, expect: ok}]", []string{"1: cases[0].relay: does not begin with mtls:, jwt:, xfcc: or grant:, which is its source"}},
		{"an identity", "cases: [{name: n, identity: harness, expect: ok}]", []string{"1: cases[0].identity: does not begin with mtls:, jwt:, xfcc: or grant:, which is its source"}},
		{"authorities without memory", "cases: [{name: n, identity: 'mtls:d n', authorities: [current_turn], policy: {top_k: 1}, expect: ok}]", []string{
			"1: cases[0].authorities: is for memory, and there is none without a scope",
			"1: cases[0].policy: is for memory, and there is none without a scope",
		}},
		{"memory without a scope", "cases: [{name: n, identity: 'mtls:d n', call: select_memory, required: [custom], expect: ok}]", []string{
			"1: cases[0].call: a memory is selected for a scope, which is missing",
			"1: cases[0].required: is for a prompt; select_memory has no segments",
		}},
		{"claims", "cases:\n- name: n\n  identity: 'jwt:https://idp.example.org agent'\n  expect: ok\n  claims:\n    /tenant: 1\n    /other: x\n    /tenant: x\n- name: m\n  identity: 'mtls:d n'\n  expect: ok\n  claims: {/tenant: x}\n- {name: o, identity: 'jwt:https://idp.example.org agent', expect: ok, claims: [x]}\n- {name: p, identity: 'jwt:https://idp.example.org agent', expect: ok, claims: {/tenant: ''}}", []string{
			"6: cases[0].claims./tenant: is a number; must be text, in quotes",
			"7: cases[0].claims./other: the claim /other is not among those that the policy lists for the issuer https://idp.example.org",
			"8: cases[0].claims./tenant: stands in line 6 already; must stand once",
			"12: cases[1].claims./tenant: a caller by mtls has no claims; one by jwt has",
			"13: cases[2].claims: is a list; must be a mapping of JSON pointers to text",
			"14: cases[3].claims./tenant: the claim /tenant is not text of 1 to 256 bytes, so that it would not be kept",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := p.ParseCases([]byte(test.text))
			if diff := cmp.Diff(test.want, faultsOf(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIdentities(t *testing.T) {
	id := func(source identity.Source, issuer, name string) identity.Identity {
		return identity.Identity{Source: source, Issuer: issuer, Name: name}
	}
	for _, test := range []struct {
		text string
		want identity.Caller
	}{
		{"mtls:spiffe://example.org/a", identity.Caller{Identity: id(identity.MTLS, "example.org", "spiffe://example.org/a"), SPIFFE: true}},
		{"xfcc:spiffe://example.org/a/b", identity.Caller{Identity: id(identity.XFCC, "example.org", "spiffe://example.org/a/b"), SPIFFE: true}},
		{"jwt:spiffe://example.org/a", identity.Caller{Identity: id(identity.JWT, "example.org", "spiffe://example.org/a"), SPIFFE: true}},
		{"jwt:https://idp:8443/x system:serviceaccount:a:b", identity.Caller{Identity: id(identity.JWT, "https://idp:8443/x", "system:serviceaccount:a:b")}},
		{"jwt:i spiffe://example.org/a", identity.Caller{Identity: id(identity.JWT, "i", "spiffe://example.org/a")}},
		{"grant:https://coordinator.example.org", *identity.GrantIssuer("https://coordinator.example.org")},
		{"mtls:corp a b", identity.Caller{Identity: id(identity.MTLS, "corp", "a b")}},
	} {
		c, err := policy.ParseIdentity(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, *c); diff != "" {
			t.Errorf("%s: %s", test.text, diff)
		}
		if got := policy.FormatIdentity(c); got != test.text {
			t.Errorf("%s is written as %s", test.text, got)
		}
	}
	for text, want := range map[string]string{
		"":                                  "does not begin with mtls:, jwt:, xfcc: or grant:, which is its source",
		"spiffe://example.org/a":            "does not begin with mtls:, jwt:, xfcc: or grant:, which is its source",
		"mtls:":                             "must be SOURCE:SPIFFE-ID or SOURCE:ISSUER NAME",
		"mtls:spiffe://example.org":         "has no path",
		"mtls:spiffe://example.org/*":       "path segment characters are limited",
		"jwt:https://idp.example.org":       "must be SOURCE:SPIFFE-ID or SOURCE:ISSUER NAME",
		"jwt: a":                            "has an issuer that is empty",
		"jwt:i ":                            "has a name that is empty",
		"mtls:https://i a":                  "has an issuer that is not only the name of a trust domain",
		"grant:":                            "has an issuer that is empty",
		"grant:i s":                         "has an issuer that holds white space",
		"xfcc:example.org a":                "names an issuer; xfcc names SPIFFE IDs alone",
		"jwt:i " + strings.Repeat("x", 256): "has a name that is longer than 255 bytes",
	} {
		if _, err := policy.ParseIdentity(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestExplain(t *testing.T) {
	p := example(t)
	for _, test := range []struct {
		name   string
		caller *identity.Caller
		scope  string
		want   string
	}{
		{"an exact identity and scope", token("harness", ""), "user:mei", `
identity    jwt:https://idp.example.org harness
entry       harness (line 22), by the identity jwt:https://idp.example.org harness (line 26)
scope       "user:mei" is permitted by exact "user:mei" (line 30)
may assert  authorities user_default, workspace_override, current_turn; required segments base_instructions, tool_descriptions, working_mode
bounds      min_score at least 0.2, top_k at most 20, max_chars at most 6000, max_tokens at most 2000
mandatory   base_instructions
`},
		{"all scopes", token("agent", "acme"), "", `
identity        jwt:https://idp.example.org agent
entry           agent (line 37), by the identity jwt:https://idp.example.org agent (line 39)
without memory  authorities user_default; required segments none
scope           prefix "tenant/{claim:/tenant}" and '/' (line 41), where {claim:/tenant} is "acme": authorities user_default; required segments none
bounds          top_k at most 5, max_chars at most 3000, max_tokens at most 800
mandatory       none
`},
		{"a claim that is not there", token("agent", ""), "tenant/acme/1", `
identity   jwt:https://idp.example.org agent
entry      agent (line 37), by the identity jwt:https://idp.example.org agent (line 39)
scope      "tenant/acme/1" is not permitted: no scope of the entry covers it
           not prefix "tenant/{claim:/tenant}" and '/' (line 41), where {claim:/tenant} has no value, so that nothing matches
bounds     top_k at most 5, max_chars at most 3000, max_tokens at most 800
mandatory  none
`},
		{"a claim with the separator", token("agent", "a/b"), "tenant/a/b/1", `
identity   jwt:https://idp.example.org agent
entry      agent (line 37), by the identity jwt:https://idp.example.org agent (line 39)
scope      "tenant/a/b/1" is not permitted: no scope of the entry covers it
           not prefix "tenant/{claim:/tenant}" and '/' (line 41), where {claim:/tenant} is "a/b" and holds the separator, so that nothing matches
bounds     top_k at most 5, max_chars at most 3000, max_tokens at most 800
mandatory  none
`},
		{"a pattern", spiffe(identity.MTLS, "/ns/prod/sa/worker"), "namespace/prod", `
identity    mtls:spiffe://example.org/ns/prod/sa/worker
entry       worker (line 45), by the pattern mtls:spiffe://example.org/ns/{namespace}/sa/worker (line 47)
scope       "namespace/prod" is permitted by exact "namespace/{namespace}" (line 50), where {namespace} is "prod"
may assert  authorities user_default; required segments none
bounds      none
mandatory   none
`},
		{"a relay", spiffe(identity.MTLS, "/ns/prod/sa/gateway"), "", `
identity        mtls:spiffe://example.org/ns/prod/sa/gateway
entry           gateway (line 61), by the pattern mtls:spiffe://example.org/ns/{namespace}/sa/gateway (line 63)
without memory  authorities user_default; required segments none
scopes          none
may relay       grants of https://coordinator.example.org, without memory
                and for exact "user:mei" (line 67)
                and for prefix "user:{namespace}" and '-' (line 68), where {namespace} is "prod"
bounds          none
mandatory       none
`},
		{"a relay for a scope", spiffe(identity.MTLS, "/ns/prod/sa/gateway"), "user:mei", `
identity   mtls:spiffe://example.org/ns/prod/sa/gateway
entry      gateway (line 61), by the pattern mtls:spiffe://example.org/ns/{namespace}/sa/gateway (line 63)
scope      "user:mei" is not permitted: no scope of the entry covers it
may relay  grants of https://coordinator.example.org, by exact "user:mei" (line 67)
bounds     none
mandatory  none
`},
		{"nobody", spiffe(identity.MTLS, "/a"), "namespace/prod", `
identity  mtls:spiffe://example.org/a
entry     none: the file does not name this identity, so it may call ListTokenizers and nothing else
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got strings.Builder
			if err := p.Explain(&got, test.caller, test.scope); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
	p = parse(t, "version: 1\ncallers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}]}]")
	var got strings.Builder
	if err := p.Explain(&got, &identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "d", Name: "n"}}, ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.String(), "\nscopes          none\n") {
		t.Error(got.String())
	}
}
