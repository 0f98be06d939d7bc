package identity

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

// remembered is a token that was verified. It is never changed.
type remembered struct {
	caller     *Caller
	issuer     *issuer
	choice     choice
	keyID      string
	algorithm  string
	thumbprint [32]byte
	validity   validity
}

// Verify returns whom a token names. An error is an *InvalidError of JWT. Only a call with a key that its
// issuer's URL did not hold waits, for at most 5 s: if nobody asked for that in the last 10 s, or with the
// few that ask at the same time. beforeWait is called once before it; it may be nil.
func (t *Tokens) Verify(ctx context.Context, token string, beforeWait func()) (*Caller, error) {
	if len(token) > maxTokenBytes {
		return nil, refused(checkTooLong)
	}
	now := t.now()
	in := t.issuers.Load()
	sum := sha256.Sum256([]byte(token))
	if r, ok := t.memory.Get(sum); ok {
		if r.holds(in, now) {
			return r.caller, nil
		}
		t.memory.Remove(sum)
	}
	r, invalid := t.verify(ctx, in, token, beforeWait)
	if invalid != nil {
		return nil, invalid
	}
	t.memory.Add(sum, r)
	return r.caller, nil
}

// holds reports whether the token would still be verified by the same issuer with the same key.
func (r *remembered) holds(in *issuers, now time.Time) bool {
	if in.of(r.choice) != r.issuer || r.validity.check(now) != "" {
		return false
	}
	k, err := r.issuer.keys.Current().Find(r.keyID, r.algorithm)
	return err == nil && k.Thumbprint == r.thumbprint
}

func (t *Tokens) verify(ctx context.Context, in *issuers, token string, beforeWait func()) (*remembered, *InvalidError) {
	u, invalid := parseToken(token)
	if invalid != nil {
		return nil, invalid
	}
	chosen, ok := choiceOf(u.claims)
	i := in.of(chosen)
	if !ok || i == nil {
		return nil, refused(checkIssuer)
	}
	k, check := t.key(ctx, i, u, beforeWait)
	if check != "" {
		return nil, refused(check)
	}
	if !u.signedBy(k) {
		return nil, refused(checkSignature)
	}
	caller, v, check := i.caller(u.claims)
	if check == "" {
		check = v.check(t.now())
	}
	if check != "" {
		return nil, refused(check)
	}
	return &remembered{caller, i, chosen, u.keyID, u.algorithm, k.Thumbprint, v}, nil
}

// key returns the key of a token, which it waits for if it may, or what does not hold.
func (t *Tokens) key(ctx context.Context, i *issuer, u *unverified, beforeWait func()) (*jwks.Key, string) {
	if !slices.Contains(i.algorithms, u.algorithm) {
		return nil, checkAlgorithm
	}
	wait := func() bool {
		if beforeWait != nil {
			beforeWait()
		}
		return true
	}
	find := func(s *jwks.Set) (*jwks.Key, error) { return s.Find(u.keyID, u.algorithm) }
	k, err := i.keys.Await(ctx, find, wait)
	return k, keyChecks[err]
}

// keyChecks are the checks by why there is no key.
var keyChecks = map[error]string{
	jwks.ErrNone: checkNoKeys, jwks.ErrUnknown: checkUnknownKey, jwks.ErrUnnamed: checkKeyID,
	jwks.ErrAmbiguous: checkAmbiguousKey, jwks.ErrAlgorithm: checkAlgorithm,
}
