package policy

import (
	"slices"
	"strings"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// spiffe reads an identity by its SPIFFE ID, or a pattern of them.
func (f *file) spiffe(v field, source identity.Source) (named, bool) {
	text, ok := f.text(v, mustPattern)
	if !ok {
		return named{}, false
	}
	p, problem := parsePattern(text)
	if problem != "" {
		f.wrong(v, "%s; must be %s", problem, mustPattern)
		return named{}, false
	}
	id := named{&matched{text: string(source) + ":" + text, line: v.Line, pattern: p}, source, p.trustDomain}
	switch {
	case source == identity.JWT && !f.jwtTrusted(p.trustDomain):
		f.wrong(v, "no token can prove it: there is no issuer with spiffe_trust_domain %s", p.trustDomain)
	case source == identity.XFCC && !f.xfccTrusted(p.trustDomain):
		f.wrong(v, "no proxy can name it: none has the caller xfcc and %s among its trust_domains", p.trustDomain)
	case source == identity.MTLS && p.exact() && f.proxied[text]:
		f.wrong(v, "is a proxy, which calls for others and is never the caller itself")
	}
	if p.exact() {
		return id, f.known(v, id.matched, subject{identity.Identity{Source: source, Issuer: p.trustDomain, Name: text}, true})
	}
	return id, f.pattern(v, id.matched, group{source, p.trustDomain})
}

// token reads an identity by a token's issuer and subject.
func (f *file) token(values map[string]field) (named, bool) {
	issuer, ok := f.checked(values["issuer"], "one of issuers", issuerRule)
	subjectName, ok2 := f.checked(values["subject"], "text of 1 to 255 bytes without control characters", plainText(255))
	if !ok || !ok2 {
		return named{}, false
	}
	switch line := f.issuerLines[issuer]; {
	case f.jwtTrusted(issuer):
		f.wrong(values["issuer"], "is the trust domain of an issuer; must be written as spiffe: spiffe://%s/…", issuer)
	case line == 0:
		f.wrong(values["issuer"], "no token can prove it: %q is not among issuers", issuer)
	}
	id := named{&matched{text: "jwt:" + issuer + " " + subjectName, line: values["subject"].Line}, identity.JWT, issuer}
	return id, f.known(values["subject"], id.matched, subject{identity.Identity{Source: identity.JWT, Issuer: issuer, Name: subjectName}, false})
}

// certificate reads an identity by a name of a certificate that is no SPIFFE ID.
func (f *file) certificate(values map[string]field) (named, bool) {
	domain, ok := f.checked(values["trust_domain"], mustTrustDomain, trustDomainRule)
	name, ok2 := f.checked(values["name"], "a DNS name or an e-mail address, text of 1 to 2048 bytes", func(s string) string {
		if strings.HasPrefix(s, spiffeScheme) {
			return "is a SPIFFE ID, which the key spiffe is for"
		}
		return plainText(identity.MaxNameBytes)(s)
	})
	if !ok || !ok2 {
		return named{}, false
	}
	id := named{&matched{text: "mtls:" + domain + " " + name, line: values["name"].Line}, identity.MTLS, domain}
	return id, f.known(values["name"], id.matched, subject{identity.Identity{Source: identity.MTLS, Issuer: domain, Name: name}, false})
}

// known remembers an exact identity, which may stand once.
func (f *file) known(v field, m *matched, s subject) bool {
	if earlier := f.exact[s]; earlier != nil {
		f.wrong(v, "this identity stands in line %d already; must stand once", earlier.line)
		return false
	}
	f.exact[s] = m
	return true
}

// pattern remembers a pattern, which may not be covered by an earlier one.
func (f *file) pattern(v field, m *matched, g group) bool {
	if f.patternsN++; f.patternsN > maxPatterns {
		if f.patternsN == maxPatterns+1 {
			f.wrong(v, "there are more than %d patterns", maxPatterns)
		}
		return false
	}
	for _, earlier := range f.patterns[g] {
		if earlier.pattern.covers(m.pattern) {
			f.wrong(v, "never matches: the pattern in line %d covers all of it", earlier.line)
			return false
		}
	}
	f.patterns[g] = append(f.patterns[g], m)
	return true
}

// binds refuses a placeholder that not all identities of an entry have a value for.
func (f *file) binds(v field, p part, identities []named) {
	for _, id := range identities {
		switch {
		case p.variable != "" && id.pattern.find(p.variable) < 0:
			f.wrong(v, "{%s} has no value for the identity in line %d, which has no such segment", p.variable, id.line)
		case p.claim != "" && id.source != identity.JWT:
			f.wrong(v, "{claim:%s} has no value for the identity in line %d, which comes by no token", p.claim, id.line)
		case p.claim != "" && !slices.Contains(f.claims[id.issuer], p.claim):
			f.wrong(v, "{claim:%s} has no value for the identity in line %d, whose issuer does not list it among its claims", p.claim, id.line)
		}
	}
}
