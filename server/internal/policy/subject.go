package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// ParseIdentity reads an identity as a person writes it: SOURCE:SPIFFE-ID, or SOURCE:ISSUER NAME with
// one space, where a source is mtls, jwt or xfcc, and an issuer that of a token or, with mtls, a trust
// domain; or grant:ISSUER, who signs grants.
func ParseIdentity(s string) (*identity.Caller, error) {
	source, rest, ok := strings.Cut(s, ":")
	c := &identity.Caller{Identity: identity.Identity{Source: identity.Source(source)}}
	if !ok || !slices.Contains([]identity.Source{identity.MTLS, identity.JWT, identity.XFCC, identity.Grant}, c.Source) {
		return nil, errors.New("does not begin with mtls:, jwt:, xfcc: or grant:, which is its source")
	}
	if c.Source == identity.Grant {
		if problem := issuerRule(rest); problem != "" {
			return nil, errors.New("has an issuer that " + problem)
		}
		return identity.GrantIssuer(rest), nil
	}
	issuer, name, two := strings.Cut(rest, " ")
	if !two {
		if problem := spiffeRule(rest); problem != "" {
			return nil, fmt.Errorf("%s; must be SOURCE:SPIFFE-ID or SOURCE:ISSUER NAME", problem)
		}
		c.SPIFFE, c.Name, c.Issuer = true, rest, spiffeid.RequireFromString(rest).TrustDomain().Name()
		return c, nil
	}
	c.Issuer, c.Name = issuer, name
	rule, most := issuerRule, 255
	switch c.Source {
	case identity.XFCC:
		return nil, errors.New("names an issuer; xfcc names SPIFFE IDs alone")
	case identity.MTLS:
		rule, most = trustDomainRule, identity.MaxNameBytes
	}
	if problem := rule(issuer); problem != "" {
		return nil, errors.New("has an issuer that " + problem)
	}
	if problem := plainText(most)(name); problem != "" {
		return nil, errors.New("has a name that " + problem)
	}
	return c, nil
}

// FormatIdentity writes a caller as ParseIdentity reads it.
func FormatIdentity(c *identity.Caller) string {
	if c.SPIFFE || c.Source == identity.Grant {
		return string(c.Source) + ":" + c.Name
	}
	return string(c.Source) + ":" + c.Issuer + " " + c.Name
}

// Claim gives a caller a claim, as a token would. It fails where none could: the claim's issuer would
// not be asked for it, or it would not be kept.
func (p *Policy) Claim(c *identity.Caller, pointer, value string) error {
	i := slices.IndexFunc(p.issuers, func(i identity.Issuer) bool { return i.Name == c.Issuer && i.SPIFFE == c.SPIFFE })
	switch {
	case c.Source != identity.JWT:
		return fmt.Errorf("a caller by %s has no claims; one by jwt has", c.Source)
	case i < 0 || !slices.Contains(p.issuers[i].Claims, pointer):
		return fmt.Errorf("the claim %s is not among those that the policy lists for the issuer %s", pointer, c.Issuer)
	case value == "" || len(value) > identity.MaxClaimBytes:
		return fmt.Errorf("the claim %s is not text of 1 to %d bytes, so that it would not be kept", pointer, identity.MaxClaimBytes)
	}
	c.Claims = maps.Clone(c.Claims)
	if c.Claims == nil {
		c.Claims = make(map[string]string)
	}
	c.Claims[pointer] = value
	return nil
}
