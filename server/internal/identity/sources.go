package identity

import "github.com/promptassembly/promptassembly/server/internal/jwks"

// Issuer is who signs tokens that are believed.
type Issuer struct {
	// Name is the claim iss, or a trust domain where SPIFFE is set.
	Name string
	// SPIFFE: the tokens are JWT-SVIDs, and their subject is a SPIFFE ID of the trust domain Name.
	SPIFFE bool
	// Keys is where its JSON Web Key Set is.
	Keys jwks.Location
	// Audiences are the values of aud of which a token has one; at least one.
	Audiences []string
	// SeveralAudiences: aud may hold others beside it.
	SeveralAudiences bool
	// Algorithms are the signature algorithms (RFC 7518, RFC 8037) that are believed. Empty:
	// DefaultAlgorithms.
	Algorithms []string
	// Claims are the claims that are kept, as JSON pointers (RFC 6901).
	Claims []string
}

// DefaultAlgorithms are the signature algorithms that are believed where an issuer lists none.
var DefaultAlgorithms = []string{"RS256", "ES256", "EdDSA"}

// Algorithms are the signature algorithms that an issuer can list.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Proxy is a peer that calls for others, and is believed in who they are.
type Proxy struct {
	// SPIFFEID or UnixUID says which peer it is, by its certificate or as the process at the other end
	// of a unix socket; exactly one is set.
	SPIFFEID string
	UnixUID  *uint32
	// Names says what names the caller: XFCC or JWT. The other is refused.
	Names Source
	// TrustDomains are those of the SPIFFE IDs that XFCC may name; at least one with XFCC.
	TrustDomains []string
}
