package prompt

import (
	"strings"

	"github.com/promptassembly/promptassembly/server/internal/text"
)

// neutralize returns the text of an optional segment so that it can neither draw a segment boundary
// nor forge a memory: a '-' that starts a line and is followed by "--" becomes "&#45;", and a '<'
// before the name of one of the memory tags becomes "&lt;".
func neutralize(s string) string {
	var b strings.Builder
	done := 0
	for i := range len(s) {
		replacement := ""
		switch {
		case s[i] == '-' && strings.HasPrefix(s[i:], "---") && (i == 0 || text.AfterLineBreak(s, i)):
			replacement = "&#45;"
		case s[i] == '<' && startsMemoryTag(s[i+1:]):
			replacement = "&lt;"
		default:
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(replacement)
		done = i + 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// startsMemoryTag reports whether s starts, behind a '<', as an opening or closing memory tag does.
func startsMemoryTag(s string) bool {
	s = strings.TrimPrefix(s, "/")
	return hasPrefixFold(s, "recalled_memory") || hasPrefixFold(s, "memory_hit")
}

// hasPrefixFold reports whether s starts with prefix, which is ASCII in lower case, ASCII case
// ignored. strings.EqualFold would take U+017F and U+212A for s and k.
func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}
