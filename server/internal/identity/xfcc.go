package identity

import (
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// maxXFCCBytes is the length of the longest x-forwarded-client-cert that is read: some hold a chain.
const maxXFCCBytes = 16 << 10

// xfccCaller returns who x-forwarded-client-cert names: the one URI of its one element, a SPIFFE ID of
// one of the trust domains. values are the header's, domains the names of the trust domains. The error
// is an *InvalidError.
func xfccCaller(values, domains []string) (*Caller, error) {
	if len(values) != 1 {
		return nil, invalidXFCC("several values")
	}
	uri, check := xfccURI(values[0])
	if check != "" {
		return nil, invalidXFCC(check)
	}
	// It takes no percent-encoding, which Envoy does not decode either, and no other spelling of an ID.
	id, err := spiffeid.FromString(uri)
	if err != nil || id.Path() == "" || len(uri) > MaxNameBytes {
		return nil, invalidXFCC("no SPIFFE ID")
	}
	domain := id.TrustDomain().Name()
	if !slices.Contains(domains, domain) {
		return nil, invalidXFCC("another trust domain")
	}
	return &Caller{Identity: Identity{Source: XFCC, Issuer: domain, Name: uri}, SPIFFE: true}, nil
}

func invalidXFCC(check string) error { return &InvalidError{Source: XFCC, Check: check} }

// xfccURI returns the value of the one URI of an x-forwarded-client-cert of one element, or what does
// not hold.
//
// An element is of pairs key=value with semicolons between them. A value is within double quotes if it
// holds a comma, a semicolon or an equals sign. Envoy quotes Subject, Cert and Chain always and By, URI
// and DNS never, whatever they hold: a second URI, an empty one and an equals sign in one are refused,
// and whoever signs the certificates has to see to the rest.
func xfccURI(header string) (uri, check string) {
	if len(header) > maxXFCCBytes {
		return "", "too long"
	}
	var seen [len(xfccKeys)]bool
	for rest := header; ; rest = rest[1:] {
		name, after, ok := strings.Cut(rest, "=")
		if !ok {
			return "", "malformed"
		}
		key := slices.IndexFunc(xfccKeys[:], func(k string) bool { return asciiEqualFold(name, k) })
		switch {
		case key < 0:
			return "", "unknown key"
		case key == xfccKeyURI && seen[key]:
			return "", "several URIs"
		case key >= xfccOnce && seen[key]:
			return "", "repeated key"
		}
		seen[key] = true
		n := xfccValue(after, key == xfccKeySubject)
		if n == 0 {
			if key == xfccKeyURI && (after == "" || after[0] == ';' || after[0] == ',') {
				return "", "no URI" // as Envoy says that the certificate has none
			}
			return "", "malformed"
		}
		if key == xfccKeyURI {
			uri = after[:n]
		}
		rest = after[n:]
		switch {
		case rest == "" && !seen[xfccKeyURI]:
			return "", "no URI"
		case rest == "":
			if uri[0] == '"' {
				uri = uri[1 : len(uri)-1] // an escape in it has no place in a SPIFFE ID
			}
			return uri, ""
		case rest[0] == ',':
			return "", "several elements"
		case rest[0] != ';':
			return "", "malformed"
		}
	}
}

// xfccKeys are the keys of an element. Those from xfccOnce on are in it at most once.
var xfccKeys = [...]string{"by", "dns", "hash", "cert", "chain", xfccKeySubject: "subject", xfccKeyURI: "uri"}

const (
	xfccOnce       = 2
	xfccKeySubject = 5
	xfccKeyURI     = 6
)

// xfccValue returns how long the value is that s begins with, its quotes included, or 0 if it is none.
// Only a Subject can be empty, as "".
func xfccValue(s string, subject bool) int {
	if !strings.HasPrefix(s, `"`) {
		n := strings.IndexAny(s, ",;")
		if n < 0 {
			n = len(s)
		}
		for _, c := range []byte(s[:n]) {
			if c <= ' ' || c > '~' || c == '"' || c == '=' || c == '\\' {
				return 0
			}
		}
		return n
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return 0
		case c == '"' && i == 1 && !subject:
			return 0
		case c == '"':
			return i + 1
		case c == '\\':
			n := xfccEscape(s[i+1:], subject)
			if n == 0 {
				return 0
			}
			i += n
		}
	}
	return 0
}

// xfccEscape returns how long what a backslash escapes is, or 0 if it can not escape that. Envoy sends
// a Subject as RFC 2253 writes it, with escapes of its own.
func xfccEscape(s string, subject bool) int {
	switch {
	case s == "":
		return 0
	case s[0] == '"' || s[0] == '\\':
		return 1
	case !subject:
		return 0
	case strings.IndexByte(` #+,;<=>`, s[0]) >= 0:
		return 1
	case len(s) > 1 && isHex(s[0]) && isHex(s[1]):
		return 2
	}
	return 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// asciiEqualFold reports whether s is lower but for the case of ASCII letters. strings.EqualFold would
// take ſ for s.
func asciiEqualFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
