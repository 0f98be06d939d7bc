package policy

import (
	"slices"
	"strings"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// maxPatterns bounds the patterns of a file: a call is compared with those of its trust domain in turn.
const maxPatterns = 1000

func (f *file) caller(element field, names map[string]int) {
	values, ok := f.mapping(element, "name", "identities", "authorities", "required", "scopes", "bounds", "mandatory", "may_relay")
	if !ok {
		return
	}
	f.required(element, values, "name", "identities")
	e := &entry{line: element.Line, scopeRules: newScopeRules()}
	e.name, ok = f.checked(values["name"], "text of 1 to 256 bytes without control characters", nameRule)
	if line, twice := names[e.name]; ok && twice {
		f.wrong(values["name"], "%q stands in line %d already; must stand once", e.name, line)
	} else if ok {
		names[e.name] = values["name"].Line
	}
	e.claims = Claims{setOf(f.authorities(values["authorities"])), setOf(f.kinds(values["required"]))}
	e.bounds = f.bounds(values["bounds"])
	e.mandatory = f.kinds(values["mandatory"])
	slices.Sort(e.mandatory)
	f.demands(values["mandatory"], "by this entry", e, e.claims)

	identities := f.identities(values["identities"])
	f.scopes(values["scopes"], e.scopeRules, e, identities, callerScope)
	f.relays(values["may_relay"], e, identities)
	for _, id := range identities {
		id.rights = &Rights{entry: e, matched: id.matched}
	}
	f.entries = append(f.entries, e)
}

// demands refuses mandatory kinds that may not be required.
func (f *file) demands(at field, by string, e *entry, claims Claims) {
	for _, kind := range e.mandatory {
		if !claims.MayRequire(kind) {
			f.wrong(at, "%s is mandatory, but not among what may be required %s: no prompt could satisfy it", KindName(kind), by)
		}
	}
}

func (f *file) bounds(v field) Bounds {
	if v.Node == nil {
		return Bounds{}
	}
	values, ok := f.mapping(v, "min_score", "top_k", "max_chars", "max_tokens")
	if !ok {
		return Bounds{}
	}
	return Bounds{
		MinScore:  f.fraction(values["min_score"]),
		TopK:      f.whole(values["top_k"], 1<<32-1),
		MaxChars:  f.whole(values["max_chars"], 1<<32-1),
		MaxTokens: f.whole(values["max_tokens"], 1<<32-1),
	}
}

// named is an identity of an entry, as it is read.
type named struct {
	*matched
	source identity.Source
	issuer string // of a token
}

func (f *file) identities(v field) []named {
	var list []named
	for _, element := range f.list(v, 1, "identities") {
		values, ok := f.mapping(element, "source", "spiffe", "issuer", "subject", "trust_domain", "name")
		if !ok || !f.required(element, values, "source") {
			continue
		}
		s, ok := f.choice(values["source"], string(identity.MTLS), string(identity.JWT), string(identity.XFCC), string(identity.Grant))
		if !ok {
			continue
		}
		source := identity.Source(s)
		var id named
		switch f.form(element, values, source) {
		case "spiffe":
			id, ok = f.spiffe(values["spiffe"], source)
		case "issuer":
			id, ok = f.token(values)
		case "grant":
			id, ok = f.grantIdentity(values["issuer"])
		case "trust_domain":
			id, ok = f.certificate(values)
		default:
			ok = false
		}
		if ok {
			list = append(list, id)
		}
	}
	return list
}

// forms are the ways to write an identity: the keys of each.
var forms = map[string][]string{
	"spiffe": {"spiffe"}, "issuer": {"issuer", "subject"}, "trust_domain": {"trust_domain", "name"}, "grant": {"issuer"},
}

// form returns the name of the form in which an identity is written, or "" after a fault.
func (f *file) form(element field, values map[string]field, source identity.Source) string {
	allowed := map[identity.Source][]string{
		identity.MTLS: {"spiffe", "trust_domain"}, identity.JWT: {"spiffe", "issuer"}, identity.XFCC: {"spiffe"}, identity.Grant: {"grant"},
	}[source]
	for _, first := range allowed {
		keys := forms[first]
		n := 0
		for _, key := range keys {
			if values[key].Node != nil {
				n++
			}
		}
		if n == len(keys) && len(values) == n+1 {
			return first
		}
	}
	var ways []string
	for _, first := range allowed {
		ways = append(ways, strings.Join(forms[first], " and "))
	}
	f.wrong(element, "an identity by %s must hold source and %s, and nothing else", source, strings.Join(ways, ", or source and "))
	return ""
}
