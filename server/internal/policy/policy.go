// Package policy is the file that says whose word counts: who issues tokens and grants, which proxies
// are believed, and which caller may assert what, for which scopes. What the file does not give is not
// permitted.
package policy

import (
	"github.com/promptassembly/promptassembly/server/internal/grants"
	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Policy is what a policy file says. It is immutable and safe for concurrent use.
type Policy struct {
	issuers []identity.Issuer
	proxies []identity.Proxy
	grants  []grants.Issuer
	entries []*entry
	exact   map[subject]*matched
	// patterns are in the file's order.
	patterns map[group][]*matched
}

// subject is an identity, and whether its name was verified as a SPIFFE ID.
type subject struct {
	identity.Identity
	spiffe bool
}

// group is what a pattern says literally.
type group struct {
	source      identity.Source
	trustDomain string
}

// Issuers returns who signs tokens that are believed. It may not be changed.
func (p *Policy) Issuers() []identity.Issuer { return p.issuers }

// Proxies returns who is believed in whom it calls for. It may not be changed.
func (p *Policy) Proxies() []identity.Proxy { return p.proxies }

// Grants returns who signs grants that are believed. It may not be changed.
func (p *Policy) Grants() []grants.Issuer { return p.grants }

// Callers returns the number of entries.
func (p *Policy) Callers() int { return len(p.entries) }

// Rights returns what the caller may do, or nil if the file does not name it: it may then do nothing
// that needs a right. An exact identity wins over patterns, and of those the first in the file. The
// caller may not be changed while its rights are in use.
func (p *Policy) Rights(c *identity.Caller) *Rights {
	m := p.match(c)
	switch {
	case m == nil:
		return nil
	case m.rights.entry.binds:
		return &Rights{m.rights.entry, m, c}
	default:
		return m.rights
	}
}

func (p *Policy) match(c *identity.Caller) *matched {
	if m := p.exact[subject{c.Identity, c.SPIFFE}]; m != nil {
		return m
	}
	if !c.SPIFFE {
		return nil
	}
	for _, m := range p.patterns[group{c.Source, c.Issuer}] {
		if m.pattern.matches(c.Name) {
			return m
		}
	}
	return nil
}
