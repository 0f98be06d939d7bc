package identity

import (
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/promptassembly/promptassembly/server/internal/compact"
	"github.com/promptassembly/promptassembly/server/internal/jwks"
)

// maxTokenBytes bounds a token.
const maxTokenBytes = 16 << 10

// What did not hold of a token: the Check of an InvalidError.
const (
	checkTooLong      = "too long"      // more than 16 KiB
	checkMalformed    = "malformed"     // not three parts of canonical base64url, the first two JSON objects without duplicate members
	checkHeader       = "header"        // a header parameter that brings a key, or changes what is signed
	checkType         = "type"          // not that of an access or ID token
	checkKeyID        = "key id"        // not a string of at most 256 bytes, or absent where there is not exactly one key
	checkAlgorithm    = "algorithm"     // one that is not believed, or is not that of the key
	checkIssuer       = "issuer"        // not a configured one
	checkNoKeys       = "no keys"       // of the issuer could be fetched in the last hour
	checkUnknownKey   = "unknown key"   // the issuer has no such key
	checkAmbiguousKey = "ambiguous key" // the issuer has two such keys
	checkSignature    = "signature"     // not by the key
	checkExpiry       = "expiry"        // exp, nbf or iat is not a date, or there is no exp
	checkExpired      = "expired"       // for more than the leeway
	checkNotYetValid  = "not yet valid" // nbf or iat lies ahead by more than the leeway
	checkAudience     = "audience"      // not one of the configured, or several where one is demanded
	checkSubject      = "subject"       // absent, too long, with control characters, or not a SPIFFE ID of the trust domain
)

// refused is a shorthand for what a token is refused with.
func refused(check string) *InvalidError { return &InvalidError{JWT, check} }

// forbiddenHeaders are header parameters that bring a key or a certificate, change what is signed, or
// demand what is not understood.
var forbiddenHeaders = []string{"jwk", "jku", "x5u", "x5c", "crit", "b64", "zip", "enc"}

// unverified is a token whose signature has not been looked at: nothing in it is known.
type unverified struct {
	compact   string
	algorithm string
	keyID     string // empty: none
	claims    map[string]any
}

// parseToken takes a token of the compact form apart.
func parseToken(text string) (*unverified, *InvalidError) {
	if len(text) > maxTokenBytes {
		return nil, refused(checkTooLong)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, refused(checkMalformed)
	}
	var header, claims map[string]any
	if _, ok := compact.Bytes([]byte(parts[2])); !ok || !compact.Object([]byte(parts[0]), &header) {
		return nil, refused(checkMalformed)
	}
	t := &unverified{compact: text}
	if check := t.readHeader(header); check != "" {
		return nil, refused(check)
	}
	if !compact.Object([]byte(parts[1]), &claims) {
		return nil, refused(checkMalformed)
	}
	t.claims = claims
	return t, nil
}

// readHeader returns what does not hold.
func (t *unverified) readHeader(header map[string]any) string {
	for _, name := range forbiddenHeaders {
		if _, ok := header[name]; ok {
			return checkHeader
		}
	}
	t.algorithm, _ = header["alg"].(string)
	if !slices.Contains(Algorithms, t.algorithm) {
		return checkAlgorithm
	}
	if typ, ok := header["typ"]; ok {
		name, _ := typ.(string)
		switch asciiLower(name) {
		case "jwt", "jose", "at+jwt":
		default:
			return checkType
		}
	}
	if id, ok := header["kid"]; ok {
		t.keyID, ok = id.(string)
		if !ok || t.keyID == "" || len(t.keyID) > jwks.MaxIDBytes {
			return checkKeyID
		}
	}
	return ""
}

// signedBy reports whether the signature is one by the key.
func (t *unverified) signedBy(k *jwks.Key) bool {
	signed, err := jose.ParseSignedCompact(t.compact, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(t.algorithm)})
	if err != nil {
		return false
	}
	_, err = signed.Verify(k.Public)
	return err == nil
}

// asciiLower leaves alone what Unicode would fold into ASCII.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
