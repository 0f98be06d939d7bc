package policy

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/text"
)

// maxIdentifierBytes is the length of the longest scope, by the contract.
const maxIdentifierBytes = 256

// plainText returns a rule for text of 1 to most bytes without control characters.
func plainText(most int) func(string) string {
	return func(s string) string {
		switch {
		case s == "":
			return "is empty"
		case len(s) > most:
			return fmt.Sprintf("is longer than %d bytes", most)
		case hasControl(s):
			return "holds a control character"
		case text.Blank(s):
			return "is only white space"
		default:
			return ""
		}
	}
}

// hasControl reports whether s holds what no identifier of the contract may.
func hasControl(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || 0x7F <= r && r <= 0x9F || r == '\u2028' || r == '\u2029' || r == '\uFFFE' || r == '\uFFFF'
	})
}

var nameRule = plainText(maxIdentifierBytes)

// issuerRule is that of the claim iss. White space cannot be in it, so that an identity can be written
// as an issuer, a space and a name.
func issuerRule(s string) string {
	if problem := plainText(identity.MaxNameBytes)(s); problem != "" {
		return problem
	}
	if strings.ContainsFunc(s, func(r rune) bool { return text.Blank(string(r)) }) {
		return "holds white space"
	}
	return ""
}

const mustTrustDomain = "a SPIFFE trust domain, such as example.org"

func trustDomainRule(s string) string {
	if strings.Contains(s, "/") || strings.Contains(s, ":") {
		return "is not only the name of a trust domain"
	}
	if len(s) > 255 {
		return "is longer than 255 bytes"
	}
	if _, err := spiffeid.TrustDomainFromString(s); err != nil {
		return err.Error()
	}
	return ""
}

const mustSPIFFE = "a SPIFFE ID with a path, such as spiffe://example.org/envoy"

func spiffeRule(s string) string {
	id, err := spiffeid.FromString(s)
	switch {
	case err != nil:
		return err.Error()
	case id.Path() == "":
		return "has no path"
	case len(s) > identity.MaxNameBytes:
		return "is longer than 2048 bytes"
	default:
		return ""
	}
}

const mustPointer = "a JSON pointer (RFC 6901), such as /tenant"

// pointerRule refuses braces, too, which end the pointer in a scope.
func pointerRule(s string) string {
	if problem := nameRule(s); problem != "" {
		return problem
	}
	unescaped := strings.NewReplacer("~0", "", "~1", "").Replace(s)
	switch {
	case s[0] != '/':
		return "does not begin with /"
	case strings.Contains(unescaped, "~"):
		return "holds a ~ that is neither ~0 nor ~1"
	case strings.ContainsAny(s, "{}"):
		return "holds a brace"
	default:
		return ""
	}
}

// fileRule wants a path that does not depend on a working directory.
func fileRule(s string) string {
	switch {
	case len(s) > 4096:
		return "is longer than 4096 bytes"
	case !strings.HasPrefix(s, "/") && !filepath.IsAbs(s):
		return "is not absolute"
	case strings.ContainsRune(s, 0):
		return "holds a NUL"
	default:
		return ""
	}
}
