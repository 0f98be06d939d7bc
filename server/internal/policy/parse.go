package policy

import (
	"slices"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

// Parse reads a policy file: one YAML document of at most 1 MiB, without anchors, aliases, merge
// keys, and keys that are not known or stand twice. It also refuses what can never be satisfied and
// what never matches. The error is an *Error with everything that is wrong.
func Parse(data []byte) (*Policy, error) {
	f := &file{
		Policy:      Policy{exact: make(map[subject]*matched), patterns: make(map[group][]*matched)},
		issuerLines: make(map[string]int),
		claims:      make(map[string][]string),
		domains:     make(map[string][]string),
		proxied:     make(map[string]bool),
		granting:    make(map[string]*granting),
	}
	root := f.document(data)
	if root.Node == nil {
		return nil, f.err()
	}
	values, ok := f.mapping(root, "version", "issuers", "proxies", "grants", "callers")
	if !ok {
		return nil, f.err()
	}
	if f.required(root, values, "version", "callers") {
		f.version(values["version"])
	}
	for _, element := range f.list(values["issuers"], 0, "issuers") {
		f.issuer(element)
	}
	peers := make(map[string]int)
	for _, element := range f.list(values["proxies"], 0, "proxies") {
		f.proxy(element, peers)
	}
	for _, element := range f.list(values["grants"], 0, "issuers of grants") {
		f.grant(element)
	}
	names := make(map[string]int)
	for _, element := range f.list(values["callers"], 1, "callers") {
		f.caller(element, names)
	}
	f.useless()
	if err := f.err(); err != nil {
		return nil, err
	}
	policy := f.Policy
	return &policy, nil
}

// file is a policy as it is read.
type file struct {
	reader
	Policy
	issuerLines map[string]int
	claims      map[string][]string  // of an issuer
	domains     map[string][]string  // trust domains by what names callers in them: jwt or xfcc
	proxied     map[string]bool      // the SPIFFE IDs of proxies
	granting    map[string]*granting // by the issuer
	patternsN   int
}

func (f *file) version(v field) {
	if n := f.whole(v, 1<<32-1); n != nil && *n != 1 {
		f.wrong(v, "is not known; must be 1")
	}
}

func (f *file) issuer(element field) {
	values, ok := f.mapping(element, "issuer", "spiffe_trust_domain", "keys", "audiences", "several_audiences", "algorithms", "claims")
	if !ok {
		return
	}
	f.required(element, values, "keys", "audiences")
	var i identity.Issuer
	named, spiffe := values["issuer"], values["spiffe_trust_domain"]
	switch {
	case (named.Node == nil) == (spiffe.Node == nil):
		f.wrong(element, "must hold either issuer or spiffe_trust_domain")
	case named.Node != nil:
		i.Name, ok = f.checked(named, "the claim iss, text of 1 to 2048 bytes without white space", issuerRule)
	default:
		i.SPIFFE = true
		i.Name, ok = f.checked(spiffe, mustTrustDomain, trustDomainRule)
	}
	if line, twice := f.issuerLines[i.Name]; ok && twice {
		f.wrong(element, "%q stands in line %d already; must stand once", i.Name, line)
	}
	i.Keys = f.keys(values["keys"])
	i.Audiences = f.texts(values["audiences"], 1, "audiences of 1 to 2048 bytes", plainText(identity.MaxNameBytes))
	i.SeveralAudiences = f.boolean(values["several_audiences"])
	f.distinct(f.list(values["algorithms"], 1, "algorithms"), func(e field) (string, bool) {
		algorithm, ok := f.choice(e, identity.Algorithms...)
		i.Algorithms = append(i.Algorithms, algorithm)
		return algorithm, ok
	})
	i.Claims = f.texts(values["claims"], 0, mustPointer, pointerRule)
	if i.Name != "" {
		f.issuerLines[i.Name] = element.Line
		f.claims[i.Name] = i.Claims
		if i.SPIFFE {
			f.domains["jwt"] = append(f.domains["jwt"], i.Name)
		}
	}
	f.issuers = append(f.issuers, i)
}

func (f *file) keys(v field) (l jwks.Location) {
	if v.Node == nil {
		return l
	}
	values, ok := f.mapping(v, "file", "url", "ca_file", "bearer_file")
	if !ok {
		return l
	}
	if (values["file"].Node == nil) == (values["url"].Node == nil) {
		f.wrong(v, "must hold either file or url")
	}
	const mustFile = "an absolute path of a file"
	l.File, _ = f.checked(values["file"], mustFile, fileRule)
	l.URL, _ = f.checked(values["url"], mustURL, urlRule)
	l.CAFile, _ = f.checked(values["ca_file"], mustFile, fileRule)
	l.BearerFile, _ = f.checked(values["bearer_file"], mustFile, fileRule)
	for _, key := range []string{"ca_file", "bearer_file"} {
		if values[key].Node != nil && values["url"].Node == nil {
			f.wrong(values[key], "is for a url alone")
		}
	}
	if values["ca_file"].Node != nil && isHTTP(l.URL) {
		f.wrong(values["ca_file"], "is for a url of https alone")
	}
	return l
}

func (f *file) proxy(element field, peers map[string]int) {
	values, ok := f.mapping(element, "peer", "caller", "trust_domains")
	if !ok {
		return
	}
	f.required(element, values, "peer", "caller")
	var p identity.Proxy
	if peer := f.peer(values["peer"], &p); peer != "" {
		if line, twice := peers[peer]; twice {
			f.wrong(values["peer"], "is a proxy in line %d already; must stand once", line)
		}
		peers[peer] = element.Line
	}
	p.TrustDomains = f.texts(values["trust_domains"], 1, mustTrustDomain, trustDomainRule)
	caller, _ := f.choice(values["caller"], string(identity.XFCC), string(identity.JWT))
	p.Names = identity.Source(caller)
	switch domains := values["trust_domains"]; {
	case p.Names == identity.XFCC && domains.Node == nil:
		f.wrong(element, "trust_domains is missing; must list those of the SPIFFE IDs that xfcc may name")
	case p.Names == identity.XFCC:
		f.domains["xfcc"] = append(f.domains["xfcc"], p.TrustDomains...)
	case p.Names == identity.JWT && domains.Node != nil:
		f.wrong(domains, "is for the caller xfcc alone")
	}
	if p.Names == identity.JWT && len(f.issuers) == 0 {
		f.wrong(values["caller"], "no call can come from it: there are no issuers")
	}
	f.proxies = append(f.proxies, p)
}

// peer returns a text that is the same for the same peer, or "" after a fault.
func (f *file) peer(v field, p *identity.Proxy) string {
	if v.Node == nil {
		return ""
	}
	values, ok := f.mapping(v, "spiffe", "unix_uid")
	if !ok {
		return ""
	}
	if (values["spiffe"].Node == nil) == (values["unix_uid"].Node == nil) {
		f.wrong(v, "must hold either spiffe or unix_uid")
		return ""
	}
	p.SPIFFEID, ok = f.checked(values["spiffe"], mustSPIFFE, spiffeRule)
	if ok {
		f.proxied[p.SPIFFEID] = true
		return p.SPIFFEID
	}
	if p.UnixUID = f.whole(values["unix_uid"], 1<<32-2); p.UnixUID != nil { // the last stands for no user
		return decimal(*p.UnixUID)
	}
	return ""
}

// jwtTrusted reports whether JWT-SVIDs, or xfccTrusted, whether XFCC of the trust domain are believed.
func (f *file) jwtTrusted(domain string) bool  { return slices.Contains(f.domains["jwt"], domain) }
func (f *file) xfccTrusted(domain string) bool { return slices.Contains(f.domains["xfcc"], domain) }
