package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

// issuer is an Issuer in force.
type issuer struct {
	Issuer
	domain     spiffeid.TrustDomain // where SPIFFE
	algorithms []string
	claims     map[string][]string // by pointer, its steps
	keys       *jwks.Source
}

// newIssuer checks an Issuer. Its keys are not opened.
func newIssuer(cfg Issuer) (*issuer, error) {
	i := &issuer{Issuer: cfg, algorithms: cfg.Algorithms, claims: map[string][]string{}}
	switch {
	case cfg.Name == "" || !clean(cfg.Name, MaxNameBytes):
		return nil, fmt.Errorf("the name must be 1 to %d bytes without control characters", MaxNameBytes)
	case len(cfg.Audiences) == 0 || slices.Contains(cfg.Audiences, ""):
		return nil, errors.New("there must be at least one audience, and none may be empty")
	}
	if err := cfg.Keys.Check(); err != nil {
		return nil, err
	}
	if len(i.algorithms) == 0 {
		i.algorithms = DefaultAlgorithms
	}
	for _, algorithm := range i.algorithms {
		if !slices.Contains(Algorithms, algorithm) {
			return nil, fmt.Errorf("the algorithm %q is not one of %s", algorithm, strings.Join(Algorithms, ", "))
		}
	}
	for _, pointer := range cfg.Claims {
		path, ok := parsePointer(pointer)
		if !ok {
			return nil, fmt.Errorf("the claim %q is not a JSON pointer such as /tenant", pointer)
		}
		i.claims[pointer] = path
	}
	if cfg.SPIFFE {
		var err error
		if i.domain, err = spiffeid.TrustDomainFromString(cfg.Name); err != nil || i.domain.Name() != cfg.Name {
			return nil, errors.New("the name must be a trust domain such as example.org")
		}
	}
	return i, nil
}

// issuers are the issuers in force. They are never changed.
type issuers struct {
	all      []*issuer // in the order of the configuration
	byName   map[string]*issuer
	byDomain map[string]*issuer // JWT-SVIDs
}

func newIssuers(all []*issuer) *issuers {
	s := &issuers{all: all, byName: map[string]*issuer{}, byDomain: map[string]*issuer{}}
	for _, i := range all {
		if i.SPIFFE {
			s.byDomain[i.Name] = i
		} else {
			s.byName[i.Name] = i
		}
	}
	return s
}

// choice is what of a token chooses its issuer.
type choice struct{ iss, domain string }

// choiceOf returns false for what chooses none.
func choiceOf(claims map[string]any) (c choice, ok bool) {
	if iss, there := claims["iss"]; there {
		if c.iss, ok = iss.(string); !ok || !clean(c.iss, MaxNameBytes) {
			return c, false
		}
	}
	if sub, _ := claims["sub"].(string); strings.HasPrefix(sub, "spiffe://") {
		if id, err := spiffeid.FromString(sub); err == nil {
			c.domain = id.TrustDomain().Name()
		}
	}
	return c, true
}

// of returns the issuer by the claim iss, else that of the trust domain, else nil.
func (s *issuers) of(c choice) *issuer {
	if i := s.byName[c.iss]; i != nil {
		return i
	}
	return s.byDomain[c.domain]
}
