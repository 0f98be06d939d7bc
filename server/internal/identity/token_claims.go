package identity

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// leeway is how far the clock of an issuer may be off.
const leeway = 30 * time.Second

// maxSubjectBytes is the length of the longest subject that is no SPIFFE ID (OpenID Connect).
const maxSubjectBytes = 255

// validity is when a token is to be believed.
type validity struct{ from, until time.Time }

// check returns what does not hold.
func (v validity) check(now time.Time) string {
	switch {
	case !now.Before(v.until.Add(leeway)):
		return checkExpired
	case now.Add(leeway).Before(v.from):
		return checkNotYetValid
	}
	return ""
}

// caller returns whom the claims name, and for how long, or what does not hold of them. The signature
// is verified.
func (i *issuer) caller(claims map[string]any) (*Caller, validity, string) {
	v, ok := validityOf(claims)
	if !ok {
		return nil, v, checkExpiry
	}
	if !i.isAudience(claims["aud"]) {
		return nil, v, checkAudience
	}
	name, _ := claims["sub"].(string)
	if i.SPIFFE {
		id, err := spiffeid.FromString(name)
		if err != nil || !id.MemberOf(i.domain) || id.Path() == "" || len(name) > MaxNameBytes {
			return nil, v, checkSubject
		}
	} else if !clean(name, maxSubjectBytes) {
		return nil, v, checkSubject
	}
	c := &Caller{Identity: Identity{Source: JWT, Issuer: i.Name, Name: name}, SPIFFE: i.SPIFFE}
	for pointer, path := range i.claims {
		if value, ok := at(claims, path).(string); ok && clean(value, MaxClaimBytes) {
			if c.Claims == nil {
				c.Claims = make(map[string]string, len(i.claims))
			}
			c.Claims[pointer] = value
		}
	}
	return c, v, ""
}

func validityOf(claims map[string]any) (v validity, ok bool) {
	if v.until, ok = date(claims["exp"]); !ok {
		return v, false
	}
	for _, name := range [...]string{"nbf", "iat"} {
		claim, there := claims[name]
		if !there {
			continue
		}
		from, ok := date(claim)
		if !ok {
			return v, false
		}
		if from.After(v.from) {
			v.from = from
		}
	}
	return v, true
}

// date reads a NumericDate (RFC 7519) of the years 1970 to 9999.
func date(claim any) (time.Time, bool) {
	seconds, ok := claim.(float64)
	if !ok || !(seconds >= 0 && seconds < 253402300800) {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}

func (i *issuer) isAudience(claim any) bool {
	if one, ok := claim.(string); ok {
		return slices.Contains(i.Audiences, one)
	}
	list, _ := claim.([]any)
	if len(list) > 1 && !i.SeveralAudiences {
		return false
	}
	found := false
	for _, value := range list {
		one, ok := value.(string)
		if !ok {
			return false
		}
		found = found || slices.Contains(i.Audiences, one)
	}
	return found
}

// clean reports whether s holds 1 to most bytes without control characters. What JSON could not say in
// UTF-8 arrives as replacement characters, which would make one string of several.
func clean(s string, most int) bool {
	return s != "" && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || unicode.IsControl(r)
	})
}

// parsePointer returns the steps of a JSON pointer (RFC 6901), or false. The whole document is no claim.
func parsePointer(pointer string) ([]string, bool) {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok || !utf8.ValidString(pointer) {
		return nil, false
	}
	path := strings.Split(rest, "/")
	for n, step := range path {
		plain := strings.NewReplacer("~0", "", "~1", "").Replace(step)
		if strings.Contains(plain, "~") {
			return nil, false
		}
		path[n] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return path, true
}

// at returns what a JSON pointer points to, or nil.
func at(document any, path []string) any {
	for _, step := range path {
		switch d := document.(type) {
		case map[string]any:
			document = d[step]
		case []any:
			n, err := strconv.ParseUint(step, 10, 31)
			if err != nil || n >= uint64(len(d)) || strconv.FormatUint(n, 10) != step {
				return nil
			}
			document = d[n]
		default:
			return nil
		}
	}
	return document
}
