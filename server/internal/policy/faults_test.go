package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/internal/policy"
)

// sources is the beginning of a file, of five lines, with an issuer of each kind and a proxy.
const sources = `version: 1
issuers:
  - {issuer: "https://idp.example.org", keys: {file: /k}, audiences: [a], claims: [/tenant]}
  - {spiffe_trust_domain: example.org, keys: {file: /k}, audiences: [a]}
proxies: [{peer: {spiffe: "spiffe://example.org/envoy"}, caller: xfcc, trust_domains: [example.org]}]
`

// identities makes a file with identities, the first of them in line 9.
func identities(lines ...string) string {
	return sources + "callers:\n  - name: c\n    identities:\n      - " + strings.Join(lines, "\n      - ") + "\n"
}

// scopes makes a file with scopes of a caller by a pattern with {ns}, the first of them in line 10.
func scopes(lines ...string) string {
	return identities(`{source: mtls, spiffe: "spiffe://example.org/ns/{ns}/sa/*/{sa}"}`) +
		"    scopes:\n      - " + strings.Join(lines, "\n      - ") + "\n"
}

// caller makes a file with more keys of a caller, the first of them in line 8.
func caller(lines ...string) string {
	return sources + "callers:\n  - name: c\n    " + strings.Join(lines, "\n    ") + "\n    identities: [{source: mtls, trust_domain: d, name: n}]\n"
}

// issuer makes a file with one issuer, in line 3.
func issuer(text string) string {
	return "version: 1\nissuers:\n  - " + text + "\ncallers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}]}]\n"
}

// proxy makes a file with proxies, the first of them in line 6.
func proxy(lines ...string) string {
	head, _, _ := strings.Cut(sources, "proxies")
	return head + "proxies:\n  - " + strings.Join(lines, "\n  - ") + "\ncallers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}]}]\n"
}

// formFaults are those that the schema sees as well.
var formFaults = []fault{
	{"a list", "[]", []string{"1: is a list; must be a mapping, with version, issuers, proxies, grants, callers"}},
	{"nothing in it", "{}", []string{"1: version is missing", "1: callers is missing"}},
	{"another version", "version: 2\ncallers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}]}]", []string{"1: version: is not known; must be 1"}},
	{"no callers", "version: 1\ncallers: []", []string{"2: callers: is an empty list; must hold callers"}},
	{"an empty section", "version: 1\ncallers:", []string{"2: callers: is empty; must be a list of callers"}},
	{"unknown keys", "version: 1\nuser: x\ncallers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}], scope: x}]", []string{
		"2: user: there is no such key; there are version, issuers, proxies, grants, callers",
		"3: callers[0].scope: there is no such key; there are name, identities, authorities, required, scopes, bounds, mandatory, may_relay",
	}},

	{"no issuer", issuer("{keys: {file: /k}, audiences: [a]}"), []string{"3: issuers[0]: must hold either issuer or spiffe_trust_domain"}},
	{"two issuers", issuer("{issuer: i, spiffe_trust_domain: d, keys: {file: /k}, audiences: [a]}"), []string{"3: issuers[0]: must hold either issuer or spiffe_trust_domain"}},
	{"an issuer with a space", issuer(`{issuer: "a b", keys: {file: /k}, audiences: [a]}`), []string{"3: issuers[0].issuer: holds white space; must be the claim iss, text of 1 to 2048 bytes without white space"}},
	{"a trust domain with a scheme", issuer(`{spiffe_trust_domain: "spiffe://d", keys: {file: /k}, audiences: [a]}`), []string{"3: issuers[0].spiffe_trust_domain: is not only the name of a trust domain; must be a SPIFFE trust domain, such as example.org"}},
	{"no keys and no audiences", issuer("{issuer: i}"), []string{"3: issuers[0]: keys is missing", "3: issuers[0]: audiences is missing"}},
	{"empty lists", issuer("{issuer: i, keys: {file: /k}, audiences: [], algorithms: []}"), []string{"3: issuers[0].audiences: is an empty list; must hold audiences of 1 to 2048 bytes", "3: issuers[0].algorithms: is an empty list; must hold algorithms"}},
	{"an audience twice", issuer("{issuer: i, keys: {file: /k}, audiences: [a, a]}"), []string{`3: issuers[0].audiences[1]: "a" stands in line 3 already; must stand once`}},
	{"a number as an audience", issuer("{issuer: i, keys: {file: /k}, audiences: [1]}"), []string{"3: issuers[0].audiences[0]: is a number; must be audiences of 1 to 2048 bytes, in quotes"}},
	{"a symmetric algorithm", issuer("{issuer: i, keys: {file: /k}, audiences: [a], algorithms: [HS256]}"), []string{`3: issuers[0].algorithms[0]: "HS256" is not known; must be RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA`}},
	{"none as an algorithm", issuer("{issuer: i, keys: {file: /k}, audiences: [a], algorithms: [none]}"), []string{`3: issuers[0].algorithms[0]: "none" is not known; must be RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA`}},
	{"text for a switch", issuer("{issuer: i, keys: {file: /k}, audiences: [a], several_audiences: yes please}"), []string{"3: issuers[0].several_audiences: is text; must be true or false"}},
	{"a claim that is no pointer", issuer("{issuer: i, keys: {file: /k}, audiences: [a], claims: [tenant, /a~2, \"/{x}\"]}"), []string{
		"3: issuers[0].claims[0]: does not begin with /; must be a JSON pointer (RFC 6901), such as /tenant",
		"3: issuers[0].claims[1]: holds a ~ that is neither ~0 nor ~1; must be a JSON pointer (RFC 6901), such as /tenant",
		"3: issuers[0].claims[2]: holds a brace; must be a JSON pointer (RFC 6901), such as /tenant",
	}},
	{"keys of a file and a URL", issuer(`{issuer: i, keys: {file: /k, url: "https://h"}, audiences: [a]}`), []string{"3: issuers[0].keys: must hold either file or url"}},
	{"keys of nothing", issuer(`{issuer: i, keys: {}, audiences: [a]}`), []string{"3: issuers[0].keys: must hold either file or url"}},
	{"a relative path", issuer(`{issuer: i, keys: {file: k.json}, audiences: [a]}`), []string{"3: issuers[0].keys.file: is not absolute; must be an absolute path of a file"}},
	{"a bearer for a file", issuer(`{issuer: i, keys: {file: /k, bearer_file: /b}, audiences: [a]}`), []string{"3: issuers[0].keys.bearer_file: is for a url alone"}},
	{"plaintext", issuer(`{issuer: i, keys: {url: "http://h/k"}, audiences: [a]}`), []string{"3: issuers[0].keys.url: is in plaintext, to a host that is not loopback; must be an https URL, or an http URL of a loopback address"}},
	{"another scheme", issuer(`{issuer: i, keys: {url: "file:///k"}, audiences: [a]}`), []string{"3: issuers[0].keys.url: has another scheme, or no host; must be an https URL, or an http URL of a loopback address"}},
	{"a user in a URL", issuer(`{issuer: i, keys: {url: "https://u:p@h/k"}, audiences: [a]}`), []string{"3: issuers[0].keys.url: holds a user; must be an https URL, or an http URL of a loopback address"}},

	{"a proxy by address", proxy(`{peer: {ip: 10.0.0.1}, caller: xfcc, trust_domains: [d]}`), []string{"6: proxies[0].peer.ip: there is no such key; there are spiffe, unix_uid", "6: proxies[0].peer: must hold either spiffe or unix_uid"}},
	{"a proxy by both", proxy(`{peer: {spiffe: "spiffe://d/p", unix_uid: 1}, caller: xfcc, trust_domains: [d]}`), []string{"6: proxies[0].peer: must hold either spiffe or unix_uid"}},
	{"a proxy by a pattern", proxy(`{peer: {spiffe: "spiffe://d/*"}, caller: xfcc, trust_domains: [d]}`), []string{"6: proxies[0].peer.spiffe: path segment characters are limited to letters, numbers, dots, dashes, and underscores; must be a SPIFFE ID with a path, such as spiffe://example.org/envoy"}},
	{"a proxy without a path", proxy(`{peer: {spiffe: "spiffe://d"}, caller: xfcc, trust_domains: [d]}`), []string{"6: proxies[0].peer.spiffe: has no path; must be a SPIFFE ID with a path, such as spiffe://example.org/envoy"}},
	{"no user", proxy(`{peer: {unix_uid: 4294967295}, caller: jwt}`), []string{`6: proxies[0].peer.unix_uid: "4294967295" is out of range; must be a whole number from 0 to 4294967294, in decimal`}},
	{"a proxy for mtls", proxy(`{peer: {unix_uid: 0}, caller: mtls}`), []string{`6: proxies[0].caller: "mtls" is not known; must be xfcc or jwt`}},
	{"xfcc without trust domains", proxy(`{peer: {unix_uid: 0}, caller: xfcc}`), []string{"6: proxies[0]: trust_domains is missing; must list those of the SPIFFE IDs that xfcc may name"}},
	{"jwt with trust domains", proxy(`{peer: {unix_uid: 0}, caller: jwt, trust_domains: [d]}`), []string{"6: proxies[0].trust_domains: is for the caller xfcc alone"}},
	{"a proxy of nothing", proxy(`{}`), []string{"6: proxies[0]: peer is missing", "6: proxies[0]: caller is missing"}},

	{"no name", sources + "callers: [{identities: [{source: mtls, trust_domain: d, name: n}]}]", []string{"6: callers[0]: name is missing"}},
	{"no identities", sources + "callers: [{name: c}]", []string{"6: callers[0]: identities is missing"}},
	{"no identity", sources + "callers: [{name: c, identities: []}]", []string{"6: callers[0].identities: is an empty list; must hold identities"}},
	{"a blank name", sources + "callers: [{name: ' ', identities: [{source: mtls, trust_domain: d, name: n}]}]", []string{"6: callers[0].name: is only white space; must be text of 1 to 256 bytes without control characters"}},
	{"a source that is not known", identities("{source: ip, name: n}"), []string{`9: callers[0].identities[0].source: "ip" is not known; must be mtls, jwt, xfcc or grant`}},
	{"no source", identities("{spiffe: 'spiffe://example.org/a'}"), []string{"9: callers[0].identities[0]: source is missing"}},
	{"forms mixed", identities("{source: mtls, spiffe: 'spiffe://example.org/a', name: n}", "{source: mtls, issuer: i, subject: s}", "{source: xfcc, trust_domain: d, name: n}", "{source: jwt, issuer: i}"), []string{
		"9: callers[0].identities[0]: an identity by mtls must hold source and spiffe, or source and trust_domain and name, and nothing else",
		"10: callers[0].identities[1]: an identity by mtls must hold source and spiffe, or source and trust_domain and name, and nothing else",
		"11: callers[0].identities[2]: an identity by xfcc must hold source and spiffe, and nothing else",
		"12: callers[0].identities[3]: an identity by jwt must hold source and spiffe, or source and issuer and subject, and nothing else",
	}},
	{"a SPIFFE ID as another name", identities("{source: mtls, trust_domain: example.org, name: 'spiffe://example.org/a'}"), []string{"9: callers[0].identities[0].name: is a SPIFFE ID, which the key spiffe is for; must be a DNS name or an e-mail address, text of 1 to 2048 bytes"}},
	{
		"patterns", identities(
			"{source: mtls, spiffe: 'https://example.org/a'}", "{source: mtls, spiffe: 'spiffe://example.org'}", "{source: mtls, spiffe: 'spiffe://*/a'}",
			"{source: mtls, spiffe: 'spiffe://example.org/a/**'}", "{source: mtls, spiffe: 'spiffe://example.org/a*'}", "{source: mtls, spiffe: 'spiffe://example.org/x-{ns}'}",
			"{source: mtls, spiffe: 'spiffe://example.org/{NS}'}", "{source: mtls, spiffe: 'spiffe://example.org/a//b'}", "{source: mtls, spiffe: 'spiffe://example.org/a/'}",
		), []string{
			"9: callers[0].identities[0].spiffe: does not begin with spiffe://; " + mustPattern,
			"10: callers[0].identities[1].spiffe: has no path; " + mustPattern,
			"11: callers[0].identities[2].spiffe: trust domain characters are limited to lowercase letters, numbers, dots, dashes, and underscores; " + mustPattern,
			"12: callers[0].identities[3].spiffe: holds **, which there is not: each * is one segment; " + mustPattern,
			"13: callers[0].identities[4].spiffe: has a * or a brace in a segment; a whole segment is wild, or none of it; " + mustPattern,
			"14: callers[0].identities[5].spiffe: has a * or a brace in a segment; a whole segment is wild, or none of it; " + mustPattern,
			"15: callers[0].identities[6].spiffe: has a name in braces that is not 1 to 32 of a-z, 0-9 and _, a letter first; " + mustPattern,
			"16: callers[0].identities[7].spiffe: path cannot contain empty segments; " + mustPattern,
			"17: callers[0].identities[8].spiffe: path cannot contain empty segments; " + mustPattern,
		},
	},

	{"authorities", caller("authorities: [CURRENT_TURN]"), []string{`8: callers[0].authorities[0]: "CURRENT_TURN" is not known; must be user_default, workspace_override or current_turn`}},
	{"an authority twice", caller("authorities: [current_turn, current_turn]"), []string{`8: callers[0].authorities[1]: "current_turn" stands in line 8 already; must stand once`}},
	{"recalled memory", caller("required: [recalled_memory]"), []string{"8: callers[0].required[0]: recalled_memory comes from the memory alone, and is never required; must be base_instructions, identity, project_context, tool_descriptions, expert_instructions, skill_instructions, connector_status, regional_conventions, working_mode or custom"}},
	{"min_score above 1", caller("bounds: {min_score: 1.01}"), []string{`8: callers[0].bounds.min_score: "1.01" is out of range; must be a number from 0 to 1, in decimal`}},
	{"min_score below 0", caller("bounds: {min_score: -0.5}"), []string{`8: callers[0].bounds.min_score: "-0.5" is out of range; must be a number from 0 to 1, in decimal`}},
	{"min_score as text", caller("bounds: {min_score: '0.5'}"), []string{"8: callers[0].bounds.min_score: is text; must be a number from 0 to 1"}},
	{"bounds", caller("bounds:", "  top_k: -1", "  max_chars: 4294967296", "  max_tokens: unlimited"), []string{
		`9: callers[0].bounds.top_k: "-1" is out of range; must be a whole number from 0 to 4294967295, in decimal`,
		`10: callers[0].bounds.max_chars: "4294967296" is out of range; must be a whole number from 0 to 4294967295, in decimal`,
		"11: callers[0].bounds.max_tokens: is text; must be a whole number from 0 to 4294967295",
	}},

	{"a scope of nothing", scopes("{}"), []string{"11: callers[0].scopes[0]: must hold one of exact, prefix and any"}},
	{"a scope of both", scopes("{exact: a, prefix: b, separator: /}"), []string{"11: callers[0].scopes[0]: must hold one of exact, prefix and any"}},
	{"any and a scope", scopes("{any: true, exact: a}", "{any: true, prefix: a, separator: /}", "{any: true, separator: /}", "{any: false}"), []string{
		"11: callers[0].scopes[0]: any must be true, and stand beside neither exact nor prefix nor separator",
		"12: callers[0].scopes[1]: any must be true, and stand beside neither exact nor prefix nor separator",
		"13: callers[0].scopes[2]: any must be true, and stand beside neither exact nor prefix nor separator",
		"14: callers[0].scopes[3]: any must be true, and stand beside neither exact nor prefix nor separator",
	}},
	{"an empty scope", scopes("{exact: ''}"), []string{"11: callers[0].scopes[0].exact: is empty; " + mustScope}},
	{"a prefix without a separator", scopes("{prefix: a}"), []string{"11: callers[0].scopes[0]: separator is missing; must be one character of ASCII punctuation other than a brace, such as /"}},
	{"a placeholder without a separator", scopes("{exact: 'a/{ns}'}"), []string{"11: callers[0].scopes[0]: separator is missing; must be one character of ASCII punctuation other than a brace, such as /"}},
	{"a separator of an exact scope", scopes("{exact: a, separator: /}"), []string{"11: callers[0].scopes[0].separator: is for a prefix, or a scope with a placeholder, alone"}},
	{"separators", scopes("{prefix: a, separator: ''}", "{prefix: a, separator: '//'}", "{prefix: a, separator: x}", "{prefix: a, separator: '{'}"), []string{
		"11: callers[0].scopes[0].separator: is no separator; " + mustSeparator, "12: callers[0].scopes[1].separator: is no separator; " + mustSeparator,
		"13: callers[0].scopes[2].separator: is no separator; " + mustSeparator, "14: callers[0].scopes[3].separator: is no separator; " + mustSeparator,
	}},
	{"braces", scopes("{exact: 'a{'}", "{exact: 'a}'}", "{exact: '{Ns}', separator: /}", "{exact: '{claim:x}', separator: /}"), []string{
		"11: callers[0].scopes[0].exact: holds a { that is not closed; a brace itself is written twice; " + mustScope,
		"12: callers[0].scopes[1].exact: holds a } that closes nothing; a brace itself is written twice; " + mustScope,
		"13: callers[0].scopes[2].exact: has a name in braces that is not 1 to 32 of a-z, 0-9 and _, a letter first; " + mustScope,
		"14: callers[0].scopes[3].exact: has a claim that does not begin with /; " + mustScope,
	}},
	{"a control character", scopes(`{exact: "a\x07"}`), []string{"11: callers[0].scopes[0].exact: holds a control character; " + mustScope}},
}

const (
	mustPattern   = "must be a SPIFFE ID with a path, of which whole segments may be * or {name}"
	mustScope     = "must be a scope of 1 to 256 bytes, which may hold {name} and {claim:/pointer}"
	mustSeparator = "must be one character of ASCII punctuation other than a brace, such as /"
)

// meaningFaults are those that no schema sees.
var meaningFaults = []fault{
	{"a scope after any", scopes("{any: true}", "{exact: a}"), []string{"12: callers[0].scopes[1].exact: decides nothing: the scope in line 11 covers all of it"}},
	{"nothing", "", []string{"0: is empty; must be a mapping of keys to values"}},
	{"too large", "#" + strings.Repeat("x", 1<<20), []string{"0: is larger than 1 MiB"}},
	{"no YAML", "version: 1\ncallers: [", []string{"2: is no YAML: did not find expected node content"}},
	{"two documents", "version: 1\n---\nversion: 1\n", []string{"2: holds more than one YAML document; must be one"}},
	{"a key twice", "version: 1\nversion: 1\ncallers: [{name: c, name: c, identities: [{source: mtls, trust_domain: d, name: n}]}]", []string{"2: version: stands in line 1 already; must stand once", "3: callers[0].name: stands in line 3 already; must stand once"}},
	{"an anchor and its alias", "version: 1\ncallers: &all\n  - name: c\n    identities: *all\n", []string{
		"2: holds an anchor; each value must be written out, and text that begins with & goes in quotes",
		"4: holds an alias; each value must be written out, and text that begins with * goes in quotes",
	}},
	{"an unknown anchor", "version: 1\ncallers: *all\n", []string{"0: is no YAML: an unknown anchor; text that begins with * goes in quotes"}},
	{"a merge key", "version: 1\ncallers:\n  - <<: {name: c}\n", []string{"3: holds a merge key; each value must be written out"}},
	{"no number", caller("bounds: {min_score: .nan, top_k: 010, max_chars: 0x10, max_tokens: 1_0}"), []string{
		`8: callers[0].bounds.min_score: ".nan" is out of range; must be a number from 0 to 1, in decimal`,
		`8: callers[0].bounds.top_k: "010" is out of range; must be a whole number from 0 to 4294967295, in decimal`,
		`8: callers[0].bounds.max_chars: "0x10" is out of range; must be a whole number from 0 to 4294967295, in decimal`,
		`8: callers[0].bounds.max_tokens: "1_0" is out of range; must be a whole number from 0 to 4294967295, in decimal`,
	}},

	{"an issuer twice", issuer("{issuer: i, keys: {file: /k}, audiences: [a]}\n  - {issuer: i, keys: {file: /k}, audiences: [a]}\n  - {spiffe_trust_domain: i, keys: {file: /k}, audiences: [a]}"), []string{`4: issuers[1]: "i" stands in line 3 already; must stand once`, `5: issuers[2]: "i" stands in line 4 already; must stand once`}},
	{"authorities of a URL in plaintext", issuer(`{issuer: i, keys: {url: "http://[::1]/k", ca_file: /c}, audiences: [a]}`), []string{"3: issuers[0].keys.ca_file: is for a url of https alone"}},
	{"a proxy twice", proxy(`{peer: {unix_uid: 1}, caller: jwt}`, `{peer: {unix_uid: 1}, caller: xfcc, trust_domains: [d]}`), []string{"7: proxies[1].peer: is a proxy in line 6 already; must stand once"}},
	{"a proxy of tokens without issuers", "version: 1\nproxies: [{peer: {unix_uid: 1}, caller: jwt}]\ncallers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}]}]", []string{"2: proxies[0].caller: no call can come from it: there are no issuers"}},

	{"a name twice", sources + "callers:\n  - {name: c, identities: [{source: mtls, trust_domain: d, name: n}]}\n  - {name: c, identities: [{source: mtls, trust_domain: d, name: m}]}", []string{`8: callers[1].name: "c" stands in line 7 already; must stand once`}},
	{"an identity twice", identities("{source: mtls, trust_domain: d, name: n}", "{source: mtls, trust_domain: d, name: n}", "{source: mtls, spiffe: 'spiffe://example.org/a'}") + "  - name: d\n    identities:\n      - {source: mtls, spiffe: 'spiffe://example.org/a'}", []string{
		"10: callers[0].identities[1].name: this identity stands in line 9 already; must stand once",
		"14: callers[1].identities[0].spiffe: this identity stands in line 11 already; must stand once",
	}},
	{"a pattern that is covered", identities("{source: mtls, spiffe: 'spiffe://example.org/a/*'}", "{source: mtls, spiffe: 'spiffe://example.org/a/{b}'}", "{source: xfcc, spiffe: 'spiffe://example.org/a/{b}'}", "{source: mtls, spiffe: 'spiffe://example.org/a/b'}", "{source: mtls, spiffe: 'spiffe://example.org/*/b'}"), []string{"10: callers[0].identities[1].spiffe: never matches: the pattern in line 9 covers all of it"}},
	{"a name twice in a pattern", identities("{source: mtls, spiffe: 'spiffe://example.org/{a}/{a}'}"), []string{"9: callers[0].identities[0].spiffe: has the name {a} twice; " + mustPattern}},
	{"nobody who proves it", identities("{source: jwt, spiffe: 'spiffe://other.org/a'}", "{source: jwt, issuer: i, subject: s}", "{source: jwt, issuer: example.org, subject: s}", "{source: xfcc, spiffe: 'spiffe://other.org/*'}", "{source: mtls, spiffe: 'spiffe://example.org/envoy'}"), []string{
		"9: callers[0].identities[0].spiffe: no token can prove it: there is no issuer with spiffe_trust_domain other.org",
		`10: callers[0].identities[1].issuer: no token can prove it: "i" is not among issuers`,
		"11: callers[0].identities[2].issuer: is the trust domain of an issuer; must be written as spiffe: spiffe://example.org/…",
		"12: callers[0].identities[3].spiffe: no proxy can name it: none has the caller xfcc and other.org among its trust_domains",
		"13: callers[0].identities[4].spiffe: is a proxy, which calls for others and is never the caller itself",
	}},
	{"mandatory, but not required", caller("required: [custom]", "mandatory: [custom, working_mode]", "scopes:", "  - {exact: a, required: [working_mode]}"), []string{
		"9: callers[0].mandatory: working_mode is mandatory, but not among what may be required by this entry: no prompt could satisfy it",
		"11: callers[0].scopes[0].required: custom is mandatory, but not among what may be required for this scope: no prompt could satisfy it",
	}},

	{"long scopes", scopes("{exact: '"+strings.Repeat("é", 128)+"'}", "{exact: '"+strings.Repeat("é", 128)+"x'}", "{prefix: '"+strings.Repeat("x", 254)+"', separator: /}", "{prefix: '"+strings.Repeat("x", 255)+"', separator: /}"), []string{
		"12: callers[0].scopes[1].exact: is longer than any scope, 256 bytes; " + mustScope,
		"14: callers[0].scopes[3].prefix: is longer than any scope, 256 bytes; " + mustScope,
	}},
	{"no value for a placeholder", identities("{source: mtls, spiffe: 'spiffe://example.org/{ns}'}", "{source: jwt, issuer: 'https://idp.example.org', subject: s}") + "    scopes:\n      - {exact: '{ns}', separator: /}\n      - {exact: '{claim:/tenant}', separator: /}\n      - {exact: '{claim:/other}', separator: /}", []string{
		"12: callers[0].scopes[0].exact: {ns} has no value for the identity in line 10, which has no such segment",
		"13: callers[0].scopes[1].exact: {claim:/tenant} has no value for the identity in line 9, which comes by no token",
		"14: callers[0].scopes[2].exact: {claim:/other} has no value for the identity in line 9, which comes by no token",
		"14: callers[0].scopes[2].exact: {claim:/other} has no value for the identity in line 10, whose issuer does not list it among its claims",
	}},
	{"placeholders without a separator between", scopes("{exact: '{ns}{sa}', separator: /}", "{exact: '{ns}-{sa}', separator: /}", "{exact: '{ns}/{sa}', separator: /}"), []string{
		"11: callers[0].scopes[0].exact: has no separator between two placeholders, so that two callers could get one scope; " + mustScope,
		"12: callers[0].scopes[1].exact: has no separator between two placeholders, so that two callers could get one scope; " + mustScope,
	}},
	{"a scope that is covered", scopes(
		"{exact: a}", "{exact: a}", "{prefix: a, separator: /}", "{exact: a/b}", "{exact: a/}", "{exact: ab}", "{prefix: a, separator: /}", "{prefix: a/b, separator: ':'}", "{exact: 'a/{ns}', separator: ':'}",
		"{prefix: 'p/{ns}', separator: /}", "{exact: 'p/{ns}/{sa}', separator: /}", "{exact: 'p/{ns}/x', separator: ':'}", "{exact: 'p/{ns}', separator: /}", "{exact: p/x/y}",
	), []string{
		"12: callers[0].scopes[1].exact: decides nothing: the scope in line 11 covers all of it",
		"14: callers[0].scopes[3].exact: decides nothing: the scope in line 13 covers all of it",
		"17: callers[0].scopes[6].prefix: decides nothing: the scope in line 13 covers all of it",
		"18: callers[0].scopes[7].prefix: decides nothing: the scope in line 13 covers all of it",
		"19: callers[0].scopes[8].exact: decides nothing: the scope in line 13 covers all of it",
		"21: callers[0].scopes[10].exact: decides nothing: the scope in line 20 covers all of it",
	}},
}

// fault is a file, and the line and the text of everything that is wrong with it.
type fault struct {
	name, text string
	want       []string
}

func faultsOf(err error) []string {
	var got []string
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		for _, fault := range wrong.Faults {
			got = append(got, fmt.Sprintf("%d: %s", fault.Line, fault.Problem))
		}
	}
	return got
}

func TestFaults(t *testing.T) {
	for _, tests := range [][]fault{formFaults, meaningFaults, grantFormFaults, grantMeaningFaults} {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				p, err := policy.Parse([]byte(test.text))
				if diff := cmp.Diff(test.want, faultsOf(err)); diff != "" || p != nil {
					t.Errorf("%v %s", p, diff)
				}
			})
		}
	}
}

func TestErrorIsShort(t *testing.T) {
	_, err := policy.Parse([]byte("x: 1\n" + strings.Repeat("x: 1\n", 29)))
	text := err.Error()
	if !strings.HasPrefix(text, "line 1: x: there is no such key") || !strings.HasSuffix(text, "; and 12 more") || strings.Count(text, "line ") > 45 {
		t.Error(text)
	}
}

func TestTooManyPatterns(t *testing.T) {
	var lines []string
	for i := range 1001 {
		lines = append(lines, fmt.Sprintf("{source: mtls, spiffe: 'spiffe://example.org/%d/*'}", i))
	}
	parse(t, identities(lines[:1000]...))
	_, err := policy.Parse([]byte(identities(lines...)))
	if diff := cmp.Diff([]string{"1009: callers[0].identities[1000].spiffe: there are more than 1000 patterns"}, faultsOf(err)); diff != "" {
		t.Error(diff)
	}
}
