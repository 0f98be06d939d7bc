package policy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Explain writes what the caller may do and which part of the file says so, for people: for one scope,
// or for all of them if it is empty.
func (p *Policy) Explain(w io.Writer, c *identity.Caller, scope string) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name, text string, args ...any) { _, _ = fmt.Fprintf(table, name+"\t"+text+"\n", args...) }
	row("identity", "%s", FormatIdentity(c))
	r := p.Rights(c)
	if r == nil {
		row("entry", "none: the file does not name this identity, so it may call ListTokenizers and nothing else")
		return table.Flush()
	}
	e, m := r.entry, p.match(c)
	how := "the identity"
	if !m.pattern.exact() {
		how = "the pattern"
	}
	row("entry", "%s (line %d), by %s %s (line %d)", e.name, e.line, how, m.text, m.line)
	if scope == "" {
		row("without memory", "%s", e.claims.text())
		if len(e.scopes) == 0 {
			row("scopes", "none")
		}
		for i := range e.scopes {
			row("scope", "%s: %s", e.scopes[i].describe(r), e.scopes[i].claims.text())
		}
	} else if i := e.rule(scope, r); i >= 0 {
		row("scope", "%q is permitted by %s", scope, e.scopes[i].describe(r))
		row("may assert", "%s", e.scopes[i].claims.text())
	} else {
		row("scope", "%q is not permitted: no scope of the entry covers it", scope)
		for i := range e.scopes {
			row("", "not %s", e.scopes[i].describe(r))
		}
	}
	for _, issuer := range slices.Sorted(maps.Keys(e.relays)) {
		rules := e.relays[issuer]
		switch i := rules.rule(scope, r); {
		case scope == "":
			row("may relay", "grants of %s, without memory", issuer)
			for i := range rules.scopes {
				row("", "and for %s", rules.scopes[i].describe(r))
			}
		case i >= 0:
			row("may relay", "grants of %s, by %s", issuer, rules.scopes[i].describe(r))
		}
	}
	row("bounds", "%s", e.bounds.text())
	row("mandatory", "%s", list(e.mandatory, KindName))
	return table.Flush()
}

// describe says what a rule covers, and what its placeholders stand for.
func (s *scopeRule) describe(r *Rights) string {
	text := fmt.Sprintf("exact %q", s.text)
	switch {
	case s.any:
		text = "any"
	case s.prefix:
		text = fmt.Sprintf("prefix %q and %q", s.text, s.separator)
	}
	text += fmt.Sprintf(" (line %d)", s.line)
	for _, p := range s.parts {
		if !p.placeholder() {
			continue
		}
		name := p.variable
		if p.claim != "" {
			name = "claim:" + p.claim
		}
		switch value := r.value(p); {
		case value == "":
			text += fmt.Sprintf(", where {%s} has no value, so that nothing matches", name)
		case strings.IndexByte(value, s.separator) >= 0:
			text += fmt.Sprintf(", where {%s} is %q and holds the separator, so that nothing matches", name, value)
		default:
			text += fmt.Sprintf(", where {%s} is %q", name, value)
		}
	}
	return text
}

func (c Claims) text() string {
	var authorities []pb.Authority
	for number := range int32(len(pb.Authority_name)) {
		if a := pb.Authority(number); number > 0 && c.MayAssert(a) {
			authorities = append(authorities, a)
		}
	}
	var kinds []pb.SegmentKind
	for number := range int32(len(pb.SegmentKind_name)) {
		if k := pb.SegmentKind(number); number > 0 && c.MayRequire(k) {
			kinds = append(kinds, k)
		}
	}
	return "authorities " + list(authorities, AuthorityName) + "; required segments " + list(kinds, KindName)
}

func list[E any](values []E, name func(E) string) string {
	if len(values) == 0 {
		return "none"
	}
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = name(value)
	}
	return strings.Join(names, ", ")
}

func (b *Bounds) text() string {
	var bounds []string
	if b.MinScore != nil {
		bounds = append(bounds, "min_score at least "+fraction(*b.MinScore))
	}
	for _, most := range []struct {
		name  string
		bound *uint32
	}{{"top_k", b.TopK}, {"max_chars", b.MaxChars}, {"max_tokens", b.MaxTokens}} {
		if most.bound != nil {
			bounds = append(bounds, most.name+" at most "+decimal(*most.bound))
		}
	}
	return list(bounds, func(s string) string { return s })
}
