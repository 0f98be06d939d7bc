// Package compact reads the parts of JSON Web Signatures in their compact form (RFC 7515), each of which
// has one spelling.
package compact

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/json"
)

// Bytes decodes a part. It refuses padding, line breaks and spare bits.
func Bytes(part []byte) ([]byte, bool) {
	data := make([]byte, base64.RawURLEncoding.DecodedLen(len(part)))
	n, err := strict.Decode(data, part)
	return data[:n], err == nil && strict.EncodedLen(n) == len(part) // it passes over line breaks
}

var strict = base64.RawURLEncoding.Strict()

// Object reads a part that is a JSON object. It refuses duplicate members and invalid UTF-8, and tells
// upper case from lower.
func Object(part []byte, into *map[string]any) bool {
	data, ok := Bytes(part)
	return ok && utf8.Valid(data) && json.Unmarshal(data, into) == nil && *into != nil
}
