package policy

import (
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

const spiffeScheme = "spiffe://"

// pattern is a SPIFFE ID of which segments of the path may be wild.
type pattern struct {
	trustDomain string
	segments    []segment
}

// segment is one of a path: a text, or any if wild. What is wild may have a name.
type segment struct {
	text string
	wild bool
	name string
}

var variableName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

const mustPattern = "a SPIFFE ID with a path, of which whole segments may be * or {name}"

// parsePattern returns a pattern, which is a SPIFFE ID itself if nothing is wild, or what is wrong.
func parsePattern(s string) (p pattern, problem string) {
	rest, ok := strings.CutPrefix(s, spiffeScheme)
	if !ok {
		return p, "does not begin with " + spiffeScheme
	}
	if len(s) > identity.MaxNameBytes {
		return p, "is longer than 2048 bytes"
	}
	domain, path, ok := strings.Cut(rest, "/")
	if problem := trustDomainRule(domain); problem != "" {
		return p, problem
	}
	if !ok {
		return p, "has no path"
	}
	p.trustDomain = domain
	for text := range strings.SplitSeq(path, "/") {
		s := segment{text: text}
		switch {
		case text == "*":
			s = segment{wild: true}
		case text == "**":
			return p, "holds **, which there is not: each * is one segment"
		case strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}"):
			s = segment{wild: true, name: text[1 : len(text)-1]}
			if !variableName.MatchString(s.name) {
				return p, "has a name in braces that is not 1 to 32 of a-z, 0-9 and _, a letter first"
			}
			if p.find(s.name) >= 0 {
				return p, "has the name {" + s.name + "} twice"
			}
		case strings.ContainsAny(text, "*{}"):
			return p, "has a * or a brace in a segment; a whole segment is wild, or none of it"
		default:
			if err := spiffeid.ValidatePathSegment(text); err != nil {
				return p, err.Error()
			}
		}
		p.segments = append(p.segments, s)
	}
	return p, ""
}

// exact reports whether nothing is wild.
func (p pattern) exact() bool {
	for _, s := range p.segments {
		if s.wild {
			return false
		}
	}
	return true
}

// find returns the index of the segment with the name, or -1.
func (p pattern) find(name string) int {
	for i, s := range p.segments {
		if s.name == name && s.wild {
			return i
		}
	}
	return -1
}

// matches reports whether a SPIFFE ID has the trust domain and such a path.
func (p pattern) matches(id string) bool {
	path, ok := strings.CutPrefix(id, spiffeScheme)
	if !ok {
		return false
	}
	if path, ok = strings.CutPrefix(path, p.trustDomain); !ok {
		return false
	}
	for _, s := range p.segments {
		if path, ok = strings.CutPrefix(path, "/"); !ok {
			return false
		}
		end := strings.IndexByte(path, '/')
		if end < 0 {
			end = len(path)
		}
		if end == 0 || !s.wild && path[:end] != s.text {
			return false
		}
		path = path[end:]
	}
	return path == ""
}

// value returns the segment at an index of a SPIFFE ID that matches.
func (p pattern) value(id string, index int) string {
	path := id[len(spiffeScheme)+len(p.trustDomain)+1:]
	for range index {
		path = path[strings.IndexByte(path, '/')+1:]
	}
	if end := strings.IndexByte(path, '/'); end >= 0 {
		path = path[:end]
	}
	return path
}

// covers reports whether p matches all that q does.
func (p pattern) covers(q pattern) bool {
	if p.trustDomain != q.trustDomain || len(p.segments) != len(q.segments) {
		return false
	}
	for i, s := range p.segments {
		if !s.wild && (q.segments[i].wild || q.segments[i].text != s.text) {
			return false
		}
	}
	return true
}
