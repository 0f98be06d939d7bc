package identity

import "strings"

// bearer returns the token of an authorization header. values are the header's. The error is an
// *InvalidError.
func bearer(values []string) (string, error) {
	if len(values) != 1 {
		return "", invalidJWT("several values")
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !asciiEqualFold(scheme, "bearer") || !isToken(token) {
		return "", invalidJWT("no bearer")
	}
	return token, nil
}

// isToken reports whether s can be a JWT in its compact form. One that holds a space or a comma may be
// two values that something on the way has joined.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return s != ""
}

func invalidJWT(check string) error { return &InvalidError{Source: JWT, Check: check} }
