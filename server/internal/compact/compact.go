// Package compact reads the parts of JSON Web Signatures in their compact form (RFC 7515), each of which
// has one spelling.
package compact

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/json"
)

// Bytes decodes a part. It refuses padding, line breaks and spare bits.
func Bytes(part string) ([]byte, bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(part)
	return data, err == nil && base64.RawURLEncoding.EncodedLen(len(data)) == len(part)
}

// Object reads a part that is a JSON object. It refuses duplicate members and invalid UTF-8, and tells
// upper case from lower.
func Object(part string, into *map[string]any) bool {
	data, ok := Bytes(part)
	return ok && utf8.Valid(data) && json.Unmarshal(data, into) == nil && *into != nil
}
