package policy

import "slices"

const mustSeparator = "one character of ASCII punctuation other than a brace, such as /"

// scopeRules are rules of which the first that covers a scope decides.
type scopeRules struct {
	scopes []scopeRule
	// exact has the index in scopes of the rules for one scope without placeholders, by the scope;
	// others has those of all other rules, in order.
	exact  map[string]int
	others []int
}

func newScopeRules() *scopeRules { return &scopeRules{exact: make(map[string]int)} }

// rule returns the index of the first rule that covers a scope, or -1.
func (s *scopeRules) rule(scope string, r *Rights) int {
	first, ok := s.exact[scope]
	if !ok {
		first = len(s.scopes)
	}
	for _, i := range s.others {
		if i > first {
			break
		}
		if s.scopes[i].covers(scope, r) {
			return i
		}
	}
	if !ok {
		return -1
	}
	return first
}

// The keys of a scope: which are covered, and what may be asserted for them where that is asked for.
var (
	relayScope  = []string{"any", "exact", "prefix", "separator"}
	callerScope = append(slices.Clone(relayScope), "authorities", "required")
)

// scopes reads rules of an entry, with these keys.
func (f *file) scopes(v field, to *scopeRules, e *entry, identities []named, keys []string) {
	covered := coverage{exact: make(map[coverKey]int), prefixes: make(map[coverKey]int)}
	for _, element := range f.list(v, 0, "scopes") {
		rule, at, ok := f.scope(element, e, keys)
		if !ok {
			continue
		}
		if covered.any > 0 {
			f.wrong(at, "decides nothing: the scope in line %d covers all of it", covered.any)
			continue
		}
		if rule.any {
			covered.any = rule.line
			to.others = append(to.others, len(to.scopes))
			to.scopes = append(to.scopes, rule)
			continue
		}
		for _, p := range rule.parts {
			if p.placeholder() {
				f.binds(at, p, identities)
				e.binds = true
			}
		}
		if line := covered.earlier(&rule); line > 0 {
			f.wrong(at, "decides nothing: the scope in line %d covers all of it", line)
			continue
		}
		if i := len(to.scopes); rule.prefix || rule.templated() {
			to.others = append(to.others, i)
		} else {
			to.exact[rule.parts[0].text] = i
		}
		to.scopes = append(to.scopes, rule)
	}
}

// scope reads a rule. It also returns the text that says what is covered.
func (f *file) scope(element field, e *entry, keys []string) (rule scopeRule, text field, ok bool) {
	values, ok := f.mapping(element, keys...)
	if !ok {
		return rule, text, false
	}
	rule = scopeRule{line: element.Line, claims: e.claims}
	if v := values["authorities"]; v.Node != nil {
		rule.claims.authorities = setOf(f.authorities(v))
	}
	if v := values["required"]; v.Node != nil {
		rule.claims.required = setOf(f.kinds(v))
		f.demands(v, "for this scope", e, rule.claims)
	}

	if v := values["any"]; v.Node != nil {
		if !f.boolean(v) || values["exact"].Node != nil || values["prefix"].Node != nil || values["separator"].Node != nil {
			f.wrong(element, "any must be true, and stand beside neither exact nor prefix nor separator")
			return rule, v, false
		}
		rule.any, rule.text = true, "any"
		return rule, v, true
	}
	text = values["exact"]
	if rule.prefix = values["prefix"].Node != nil; rule.prefix {
		text = values["prefix"]
	}
	if (values["exact"].Node == nil) == (values["prefix"].Node == nil) {
		f.wrong(element, "must hold one of exact, prefix and any")
		return rule, text, false
	}
	const must = "a scope of 1 to 256 bytes, which may hold {name} and {claim:/pointer}"
	written, ok := f.text(text, must)
	if !ok {
		return rule, text, false
	}
	rule.text = written
	var problem string
	if rule.parts, problem = parseScope(written); problem != "" {
		f.wrong(text, "%s; must be %s", problem, must)
		return rule, text, false
	}
	if !f.separator(element, values["separator"], &rule) {
		return rule, text, false
	}
	if problem := rule.problem(); problem != "" {
		f.wrong(text, "%s; must be %s", problem, must)
		return rule, text, false
	}
	return rule, text, true
}

func (f *file) separator(element, v field, rule *scopeRule) bool {
	needed := rule.prefix || rule.templated()
	switch {
	case !needed && v.Node != nil:
		f.wrong(v, "is for a prefix, or a scope with a placeholder, alone")
		return false
	case !needed:
		return true
	case v.Node == nil:
		f.wrong(element, "separator is missing; must be %s", mustSeparator)
		return false
	}
	s, ok := f.checked(v, mustSeparator, func(s string) string {
		if len(s) != 1 || !punctuation(s[0]) {
			return "is no separator"
		}
		return ""
	})
	if ok {
		rule.separator = s[0]
	}
	return ok
}
