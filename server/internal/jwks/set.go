// Package jwks holds the public keys of those who sign, from JSON Web Key Sets (RFC 7517) in files and at
// URLs.
package jwks

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// MaxIDBytes bounds the ID of a key.
const MaxIDBytes = 256

// maxKeySetBytes is the size of the largest JSON Web Key Set.
const maxKeySetBytes = 1 << 20

// minRSABits is the size of the smallest RSA key. The largest is jose.MaxRSAModulusBits, 4096.
const minRSABits = 2048

// Key is a public key of an issuer.
type Key struct {
	// Public is an *rsa.PublicKey, an *ecdsa.PublicKey or an ed25519.PublicKey.
	Public any
	// Thumbprint is that of RFC 7638: two of the same are the same key.
	Thumbprint [32]byte

	algorithm string
}

// Fits reports whether signatures of the algorithm can be verified with the key.
func (k *Key) Fits(algorithm string) bool {
	if k.algorithm != "" && k.algorithm != algorithm && (k.algorithm != "Ed25519" || algorithm != "EdDSA") {
		return false
	}
	switch public := k.Public.(type) {
	case *rsa.PublicKey:
		return algorithm[:2] == "RS" || algorithm[:2] == "PS"
	case *ecdsa.PublicKey:
		switch algorithm {
		case "ES256":
			return public.Curve == elliptic.P256()
		case "ES384":
			return public.Curve == elliptic.P384()
		case "ES512":
			return public.Curve == elliptic.P521()
		}
		return false
	default:
		return algorithm == "EdDSA"
	}
}

// Set is the public keys of an issuer that verify signatures. It is never changed; nil holds none.
type Set struct {
	all  []*Key
	byID map[string][]*Key
}

// Why there is no key.
var (
	// ErrNone: there are no keys, for none could be fetched in the last hour.
	ErrNone = errors.New("no keys")
	// ErrUnknown: none of the keys has the ID.
	ErrUnknown = errors.New("unknown key")
	// ErrUnnamed: there is no ID, and not exactly one key.
	ErrUnnamed = errors.New("no key ID")
	// ErrAmbiguous: two keys could be meant.
	ErrAmbiguous = errors.New("ambiguous key")
	// ErrAlgorithm: no key with the ID is one of the algorithm.
	ErrAlgorithm = errors.New("a key of another algorithm")
)

// Find returns the key for signatures of an algorithm. Without an ID, it is that of an issuer with one
// key. Of several keys with the ID, one alone may fit the algorithm: to try them in turn would let
// callers choose how much work a signature is.
func (s *Set) Find(id, algorithm string) (*Key, error) {
	if s == nil {
		return nil, ErrNone
	}
	candidates := s.all
	if id != "" {
		candidates = s.byID[id]
		if len(candidates) == 0 {
			return nil, ErrUnknown
		}
	} else if len(candidates) != 1 {
		return nil, ErrUnnamed
	}
	var found *Key
	for _, k := range candidates {
		if !k.Fits(algorithm) {
			continue
		}
		if found != nil {
			return nil, ErrAmbiguous
		}
		found = k
	}
	if found == nil {
		return nil, ErrAlgorithm
	}
	return found, nil
}

// Sole returns the one key that has the ID, of whatever algorithm.
func (s *Set) Sole(id string) (*Key, error) {
	switch {
	case s == nil:
		return nil, ErrNone
	case len(s.byID[id]) == 0:
		return nil, ErrUnknown
	case len(s.byID[id]) > 1:
		return nil, ErrAmbiguous
	}
	return s.byID[id][0], nil
}

var errNotAKeySet = errors.New("not a JSON Web Key Set (RFC 7517)")

// parseKeySet returns the keys of a JSON Web Key Set that can verify signatures. The others are passed
// over, as RFC 7517 demands: of other types, sizes and uses, symmetric, private, or not well-formed.
func parseKeySet(data []byte, uses []string) (*Set, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil || set.Keys == nil {
		return nil, errNotAKeySet
	}
	s := &Set{byID: map[string][]*Key{}}
	for _, raw := range set.Keys {
		if k, id := parseKey(raw, uses); k != nil {
			s.all = append(s.all, k)
			s.byID[id] = append(s.byID[id], k)
		}
	}
	return s, nil
}

// parseKey returns nil for what cannot verify signatures.
func parseKey(raw json.RawMessage, uses []string) (*Key, string) {
	var purpose struct {
		Operations *[]string `json:"key_ops"`
	}
	var parsed jose.JSONWebKey
	if json.Unmarshal(raw, &purpose) != nil || json.Unmarshal(raw, &parsed) != nil {
		return nil, ""
	}
	if purpose.Operations != nil && !slices.Contains(*purpose.Operations, "verify") {
		return nil, ""
	}
	if parsed.Use != "" && !slices.Contains(uses, parsed.Use) || len(parsed.KeyID) > MaxIDBytes {
		return nil, ""
	}
	switch public := parsed.Key.(type) {
	case *rsa.PublicKey:
		if public.N.BitLen() < minRSABits {
			return nil, ""
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return nil, ""
	}
	thumbprint, err := parsed.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, ""
	}
	return &Key{parsed.Key, [32]byte(thumbprint), parsed.Algorithm}, parsed.KeyID
}
