package identity

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
)

// connection is what is asked of a Peer.
type connection interface {
	Caller(now time.Time) (*Caller, error)
	UnixUser() (uid uint32, ok bool)
	Private() bool
}

// verifier is what is asked of Tokens.
type verifier interface {
	Verify(ctx context.Context, token string, beforeWait func()) (*Caller, error)
}

// Authenticator finds out who a call comes from, out of all that the call carries. It is safe for
// concurrent use.
type Authenticator struct {
	tokens  verifier
	sources atomic.Pointer[sources]
}

// sources are what callers are believed by, beside their certificates. They never change.
type sources struct {
	bySPIFFE map[string]Proxy
	byUser   map[uint32]Proxy
	issuers  bool
}

// NewAuthenticator returns an authenticator that believes certificates alone. tokens verifies bearers
// once Configure says that there are issuers; it stays the caller's.
func NewAuthenticator(tokens verifier) *Authenticator {
	a := &Authenticator{tokens: tokens}
	a.sources.Store(&sources{})
	return a
}

// Configure replaces the proxies, and says whether there are issuers of tokens. A call sees either all
// of the old or all of the new. What proxies hold must not change afterwards.
func (a *Authenticator) Configure(proxies []Proxy, issuersConfigured bool) {
	s := &sources{bySPIFFE: map[string]Proxy{}, byUser: map[uint32]Proxy{}, issuers: issuersConfigured}
	for _, p := range proxies {
		if p.UnixUID != nil {
			s.byUser[*p.UnixUID] = p
		} else {
			s.bySPIFFE[p.SPIFFEID] = p
		}
	}
	a.sources.Store(s)
}

// The headers that name a caller, as gRPC spells them in metadata. One that is there with an empty value
// is there.
const (
	authorizationHeader = "authorization"
	xfccHeader          = "x-forwarded-client-cert"
)

// Authenticate returns who a call with these headers comes from, over a connection to peer. The error is
// ErrMissing if nothing names a caller, or an *InvalidError: all that names one has to hold and to agree,
// and nothing is passed over. beforeWait is called at most once, before anything is waited for; ctx ends
// the wait.
func (a *Authenticator) Authenticate(
	ctx context.Context, peer connection, header metadata.MD, beforeWait func(),
) (*Caller, error) {
	s := a.sources.Load()
	certified, err := peer.Caller(time.Now())
	if err != nil && !errors.Is(err, ErrMissing) {
		return nil, err
	}
	authorization, xfcc := header[authorizationHeader], header[xfccHeader]
	if proxy, ok := s.proxy(peer, certified); ok {
		return a.behind(ctx, proxy, s, peer, authorization, xfcc, beforeWait)
	}
	if len(xfcc) > 0 {
		return nil, invalidXFCC("not from a proxy")
	}
	if len(authorization) == 0 {
		if certified == nil {
			return nil, ErrMissing
		}
		return certified, nil
	}
	named, err := a.bearer(ctx, s, peer, authorization, beforeWait)
	switch {
	case err != nil:
		return nil, err
	case certified == nil:
		return named, nil
	case !named.SPIFFE || !certified.SPIFFE || named.Name != certified.Name:
		return nil, invalidJWT("disagrees with the certificate")
	}
	both := *certified
	both.Claims = named.Claims
	return &both, nil
}

// proxy returns the proxy that peer is, if it is one. Its certificate's name counts only as a SPIFFE ID:
// another name of the same spelling is another.
func (s *sources) proxy(peer connection, certified *Caller) (Proxy, bool) {
	if certified != nil && certified.SPIFFE {
		if p, ok := s.bySPIFFE[certified.Name]; ok {
			return p, true
		}
	}
	if len(s.byUser) == 0 {
		return Proxy{}, false
	}
	uid, ok := peer.UnixUser()
	if !ok {
		return Proxy{}, false
	}
	p, ok := s.byUser[uid]
	return p, ok
}

// behind returns who calls through a proxy. The proxy itself is no caller.
func (a *Authenticator) behind(
	ctx context.Context, proxy Proxy, s *sources, peer connection, authorization, xfcc []string, beforeWait func(),
) (*Caller, error) {
	if proxy.Names == XFCC {
		if len(authorization) > 0 {
			return nil, invalidJWT("not from this proxy")
		}
		if len(xfcc) == 0 {
			return nil, ErrMissing
		}
		return xfccCaller(xfcc, proxy.TrustDomains)
	}
	if len(xfcc) > 0 {
		return nil, invalidXFCC("not from this proxy")
	}
	if len(authorization) == 0 {
		return nil, ErrMissing
	}
	return a.bearer(ctx, s, peer, authorization, beforeWait)
}

// bearer returns who the token of an authorization header names.
func (a *Authenticator) bearer(
	ctx context.Context, s *sources, peer connection, authorization []string, beforeWait func(),
) (*Caller, error) {
	if !s.issuers {
		return nil, invalidJWT("not configured")
	}
	if !peer.Private() {
		return nil, invalidJWT("plaintext")
	}
	token, err := bearer(authorization)
	if err != nil {
		return nil, err
	}
	return a.tokens.Verify(ctx, token, beforeWait)
}
