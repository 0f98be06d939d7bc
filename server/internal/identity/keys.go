package identity

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

// maxKeySetBytes is the size of the largest JSON Web Key Set.
const maxKeySetBytes = 1 << 20

// minRSABits is the size of the smallest RSA key. The largest is jose.MaxRSAModulusBits, 4096.
const minRSABits = 2048

// key is a public key of an issuer.
type key struct {
	public     any // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	algorithm  string
	thumbprint [32]byte // RFC 7638: two of the same are the same key
}

// fits reports whether signatures of the algorithm can be verified with the key.
func (k *key) fits(algorithm string) bool {
	if k.algorithm != "" && k.algorithm != algorithm && (k.algorithm != "Ed25519" || algorithm != "EdDSA") {
		return false
	}
	switch public := k.public.(type) {
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

// keySet is the public keys of an issuer that verify signatures. It is never changed; nil holds none.
type keySet struct {
	all  []*key
	byID map[string][]*key
}

// find returns the key of a token, or what is wrong. A token without a key ID is one of an issuer with
// one key. Of several keys with the ID, one alone may fit the algorithm: to try them in turn would let
// callers choose how much work a token is.
func (s *keySet) find(id, algorithm string) (*key, string) {
	if s == nil {
		return nil, checkNoKeys
	}
	candidates := s.all
	if id != "" {
		candidates = s.byID[id]
		if len(candidates) == 0 {
			return nil, checkUnknownKey
		}
	} else if len(candidates) != 1 {
		return nil, checkKeyID
	}
	var found *key
	for _, k := range candidates {
		if !k.fits(algorithm) {
			continue
		}
		if found != nil {
			return nil, checkAmbiguousKey
		}
		found = k
	}
	if found == nil {
		return nil, checkAlgorithm
	}
	return found, ""
}

var errNotAKeySet = errors.New("not a JSON Web Key Set (RFC 7517)")

// parseKeySet returns the keys of a JSON Web Key Set that can verify signatures. The others are passed
// over, as RFC 7517 demands: of other types, sizes and uses, symmetric, private, or not well-formed.
func parseKeySet(data []byte, uses []string) (*keySet, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil || set.Keys == nil {
		return nil, errNotAKeySet
	}
	s := &keySet{byID: map[string][]*key{}}
	for _, raw := range set.Keys {
		if k, id := parseKey(raw, uses); k != nil {
			s.all = append(s.all, k)
			s.byID[id] = append(s.byID[id], k)
		}
	}
	return s, nil
}

// parseKey returns nil for what cannot verify signatures.
func parseKey(raw json.RawMessage, uses []string) (*key, string) {
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
	if parsed.Use != "" && !slices.Contains(uses, parsed.Use) || len(parsed.KeyID) > maxKeyIDBytes {
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
	return &key{parsed.Key, parsed.Algorithm, [32]byte(thumbprint)}, parsed.KeyID
}
