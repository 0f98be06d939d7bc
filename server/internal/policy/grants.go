package policy

import (
	"github.com/promptassembly/promptassembly/server/internal/grants"
	"github.com/promptassembly/promptassembly/server/internal/identity"
)

const mustGrantIssuer = "one of grants"

// grant reads an issuer of grants.
func (f *file) grant(element field) {
	values, ok := f.mapping(element, "issuer", "keys", "audiences")
	if !ok || !f.required(element, values, "issuer", "keys", "audiences") {
		return
	}
	var i grants.Issuer
	i.Name, ok = f.checked(values["issuer"], "the header parameter iss, text of 1 to 2048 bytes without white space", issuerRule)
	if earlier := f.granting[i.Name]; ok && earlier != nil {
		f.wrong(values["issuer"], "%q stands in line %d already; must stand once", i.Name, earlier.at.Line)
	} else if ok {
		f.granting[i.Name] = &granting{at: values["issuer"]}
	}
	i.Keys = f.keys(values["keys"])
	i.Audiences = f.texts(values["audiences"], 1, "audiences of 1 to 256 bytes", nameRule)
	f.grants = append(f.grants, i)
}

// granting is what the callers of a file have to do with an issuer of grants.
type granting struct {
	at             field
	named, relayed bool
}

// grantIdentity reads the identity of who signs grants.
func (f *file) grantIdentity(v field) (named, bool) {
	issuer, ok := f.checked(v, mustGrantIssuer, issuerRule)
	if !ok {
		return named{}, false
	}
	if f.granting[issuer] == nil {
		f.wrong(v, "no grant can prove it: %q is not among grants", issuer)
	} else {
		f.granting[issuer].named = true
	}
	id := named{&matched{text: "grant:" + issuer, line: v.Line}, identity.Grant, issuer}
	return id, f.known(v, id.matched, subject{identity.GrantIssuer(issuer).Identity, false})
}

// relays reads whose grants an entry may carry, for which scopes.
func (f *file) relays(v field, e *entry, identities []named) {
	f.distinct(f.list(v, 1, "issuers of grants"), func(element field) (string, bool) {
		values, ok := f.mapping(element, "issuer", "scopes")
		if !ok || !f.required(element, values, "issuer") {
			return "", false
		}
		issuer, ok := f.checked(values["issuer"], mustGrantIssuer, issuerRule)
		if !ok {
			return "", false
		}
		if f.granting[issuer] == nil {
			f.wrong(values["issuer"], "there are no grants to carry: %q is not among grants", issuer)
		} else {
			f.granting[issuer].relayed = true
		}
		rules := newScopeRules()
		f.scopes(values["scopes"], rules, e, identities, relayScope)
		if e.relays == nil {
			e.relays = make(map[string]*scopeRules)
		}
		e.relays[issuer] = rules
		return issuer, true
	})
}

// useless refuses issuers whose grants could never count.
func (f *file) useless() {
	for _, i := range f.grants {
		switch g := f.granting[i.Name]; {
		case g == nil:
		case !g.named:
			f.wrong(g.at, "its grants can never count: no caller has the identity {source: grant, issuer: %s}", i.Name)
		case !g.relayed:
			f.wrong(g.at, "its grants can never count: no caller may_relay them")
		}
	}
}

// Relays reports whether the caller may carry any grant of the issuer. The rights may be nil.
func (r *Rights) Relays(issuer string) bool { return r != nil && r.entry.relays[issuer] != nil }

// MayRelay reports whether the caller may carry a grant of the issuer that asserts all this. The rights
// may be nil.
func (r *Rights) MayRelay(issuer string, a *Asserted) bool {
	if !r.Relays(issuer) {
		return false
	}
	return !a.Memory || r.entry.relays[issuer].rule(a.Scope, r) >= 0
}
