// Package identity finds out who calls: by mTLS, by a JWT bearer, or by what a trusted proxy says in
// x-forwarded-client-cert.
package identity

import "errors"

// Source is how a caller proved who it is.
type Source string

// The sources. One name from two of them shares no right.
const (
	MTLS Source = "mtls" // the certificate of its connection
	JWT  Source = "jwt"  // a bearer token
	XFCC Source = "xfcc" // x-forwarded-client-cert, from a configured proxy
	// Grant: nobody calls by it. It is whose word counts where a request carries a signed grant.
	Grant Source = "grant"
)

// Identity says who calls. All three parts count.
type Identity struct {
	Source Source
	// Issuer is who vouches for the name: a trust domain, or the issuer of a token.
	Issuer string
	// Name is a SPIFFE ID, another name of a certificate, or the subject of a token. It is UTF-8 of at
	// most MaxNameBytes without control characters.
	Name string
}

// MaxNameBytes is the length of the longest name: that of a SPIFFE ID.
const MaxNameBytes = 2048

// Caller is a verified identity and what its issuer says of it. It is shared by calls and never
// changed.
type Caller struct {
	Identity
	// SPIFFE: the name is a SPIFFE ID that was verified as one, with a path, in the trust domain Issuer.
	SPIFFE bool
	// Claims are the claims of a token that its issuer's configuration lists, by their JSON pointer
	// (RFC 6901). What the token does not hold, or not as a string of 1 to MaxClaimBytes, is not in it.
	Claims map[string]string
}

// GrantIssuer returns who signs grants under that name.
func GrantIssuer(name string) *Caller {
	return &Caller{Identity: Identity{Source: Grant, Issuer: name, Name: name}}
}

// MaxClaimBytes is the length of the longest claim that is kept: a scope is no longer.
const MaxClaimBytes = 256

// ErrMissing means that a call carries no identity.
var ErrMissing = errors.New("no identity")

// InvalidError means that a call carries an identity that does not hold.
type InvalidError struct {
	// Source is what did not hold.
	Source Source
	// Check is a fixed word or two for what failed, such as "expired": it holds nothing of the call.
	Check string
}

// Error implements error.
func (e *InvalidError) Error() string { return string(e.Source) + ": " + e.Check }
