package policy

import (
	"strings"
)

// scopeRule covers scopes: one, those below a prefix, or any.
type scopeRule struct {
	line   int
	any    bool
	text   string // as it is written
	parts  []part
	prefix bool
	// separator follows a prefix, and is in no value of a placeholder; 0 if there is neither.
	separator byte
	claims    Claims
}

// part is a piece of a scope: text, or a placeholder for what is known of the caller.
type part struct {
	text     string
	variable string // a named segment of the pattern
	claim    string // a JSON pointer
}

func (p part) placeholder() bool { return p.variable != "" || p.claim != "" }

// parseScope splits a scope at its placeholders, {name} and {claim:/json/pointer}; {{ and }} are braces
// themselves. It returns what is wrong, or "".
func parseScope(s string) (parts []part, problem string) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String()})
			text.Reset()
		}
	}
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			text.WriteString(s)
			break
		}
		text.WriteString(s[:i])
		switch brace := s[i : i+1]; {
		case strings.HasPrefix(s[i+1:], brace):
			text.WriteString(brace)
			s = s[i+2:]
			continue
		case brace == "}":
			return nil, "holds a } that closes nothing; a brace itself is written twice"
		}
		name, rest, closed := strings.Cut(s[i+1:], "}")
		if !closed {
			return nil, "holds a { that is not closed; a brace itself is written twice"
		}
		flush()
		s = rest
		if pointer, ok := strings.CutPrefix(name, "claim:"); ok {
			if problem := pointerRule(pointer); problem != "" {
				return nil, "has a claim that " + problem
			}
			parts = append(parts, part{claim: pointer})
			continue
		}
		if !variableName.MatchString(name) {
			return nil, "has a name in braces that is not 1 to 32 of a-z, 0-9 and _, a letter first"
		}
		parts = append(parts, part{variable: name})
	}
	flush()
	return parts, ""
}

// templated reports whether the rule holds a placeholder.
func (s *scopeRule) templated() bool {
	for _, p := range s.parts {
		if p.placeholder() {
			return true
		}
	}
	return false
}

// problem returns what is wrong with the texts of a rule, or "".
func (s *scopeRule) problem() string {
	var texts strings.Builder
	least, separated := 0, true // no placeholder yet without a separator after it
	for _, p := range s.parts {
		if !p.placeholder() {
			texts.WriteString(p.text)
			least += len(p.text)
			separated = separated || strings.IndexByte(p.text, s.separator) >= 0
			continue
		}
		if !separated {
			// a-b-c would be of {x}-{y} in two ways.
			return "has no separator between two placeholders, so that two callers could get one scope"
		}
		least++ // no value is empty
		separated = false
	}
	if s.prefix {
		least += 2
	}
	switch {
	case least == 0:
		return "is empty"
	case least > maxIdentifierBytes:
		return "is longer than any scope, 256 bytes"
	case hasControl(texts.String()):
		return "holds a control character"
	case !s.templated() && nameRule(texts.String()) != "":
		return nameRule(texts.String())
	default:
		return ""
	}
}

// key is the beginning of all scopes that the rule covers: equal for equal rules. That of a rule which
// covers less begins with it. Placeholders stand between NULs, which no text holds.
func (s *scopeRule) key() string {
	var b strings.Builder
	for _, p := range s.parts {
		switch {
		case p.variable != "":
			b.WriteString("\x00" + p.variable + "\x00")
		case p.claim != "":
			b.WriteString("\x00claim:" + p.claim + "\x00")
		default:
			b.WriteString(p.text)
		}
	}
	if s.prefix {
		b.WriteByte(s.separator)
	}
	return b.String()
}

// covers reports whether the rule covers a scope for the caller.
func (s *scopeRule) covers(scope string, r *Rights) bool {
	if s.any {
		return true
	}
	for _, p := range s.parts {
		text := p.text
		if p.placeholder() {
			text = r.value(p)
			if text == "" || strings.IndexByte(text, s.separator) >= 0 {
				return false
			}
		}
		var ok bool
		if scope, ok = strings.CutPrefix(scope, text); !ok {
			return false
		}
	}
	if s.prefix {
		return len(scope) > 1 && scope[0] == s.separator
	}
	return scope == ""
}

// coverage finds scope rules that an earlier one covers.
type coverage struct {
	any             int              // the line; 0: none
	exact, prefixes map[coverKey]int // the lines
}

// coverKey is a rule's key and, where it has placeholders, the separator that bounds their values.
type coverKey struct {
	key       string
	separator byte
}

// earlier returns the line of an earlier rule that covers all of s, or 0, and remembers s.
func (c *coverage) earlier(s *scopeRule) int {
	key, own := s.key(), byte(0)
	if s.templated() {
		own = s.separator
	}
	if !s.prefix {
		if line := c.exact[coverKey{key, own}]; line > 0 {
			return line
		}
	}
	for i := range len(key) {
		if i == len(key)-1 && !s.prefix {
			break // a prefix does not cover what is nothing more
		}
		if !punctuation(key[i]) {
			continue
		}
		for _, separator := range [...]byte{0, own} {
			if line := c.prefixes[coverKey{key[:i+1], separator}]; line > 0 {
				return line
			}
		}
	}
	if s.prefix {
		c.prefixes[coverKey{key, own}] = s.line
	} else {
		c.exact[coverKey{key, own}] = s.line
	}
	return 0
}

// punctuation reports whether c can be a separator: braces are those of placeholders.
func punctuation(c byte) bool {
	return '!' <= c && c <= '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || c == '|' || c == '~'
}
