// Package tokens counts the tokens of rendered texts. A counter is chosen by its name; the default,
// Estimate, is a budget unit and no vendor's token.
package tokens

import (
	"cmp"
	"slices"
)

// Counter counts tokens. It is safe for concurrent use, and the same text always gives the same
// count.
type Counter interface {
	// Name is what a request calls the counter.
	Name() string
	// Version names the counting rule; it changes whenever any count does.
	Version() string
	// Source says where the rule comes from, for people, such as "tokenizer.json, sha256:…".
	Source() string
	// Exact reports whether the counts are those of the model that the name stands for.
	Exact() bool
	// Additive promises seams: places where texts may be cut, and the counts of the parts add up to
	// that of the whole. A token spans none of them, and for all texts a and b, valid UTF-8:
	//
	//  1. Where a ends in ">\n", and b starts with '<' and an ASCII letter or with "</" (the lines of
	//     a context): Count(a+b) = Count(a) + Count(b).
	//  2. In the planner's separator, before its first '-': Count(a+"\n\n---\n\n"+b) =
	//     Count(a+"\n\n---\n\n") - Count("---\n\n") + Count("---\n\n"+b).
	//  3. Where a ends in an opening tag, in the '"' that ends an attribute, and b starts with the next
	//     attribute (a space, a name of ASCII letters and '_', `="`): Count(a+b) = Count(a) + Count(b).
	//
	// Elsewhere counts need not add up. A counter of which this cannot be proven says false: what is
	// rendered is then counted whole each time.
	Additive() bool
	// Count returns the tokens of text, valid UTF-8. It neither keeps nor changes text.
	Count(text []byte) int
}

// Set is the counters of a server, by name ascending (bytes).
type Set []Counter

// NewSet returns the set of the given counters. Their names must differ.
func NewSet(counters ...Counter) Set {
	set := slices.Clone(counters)
	slices.SortFunc(set, func(a, b Counter) int { return cmp.Compare(a.Name(), b.Name()) })
	return set
}

// Find returns the counter of that name, or false if there is none. An empty name is Estimate's.
func (s Set) Find(name string) (Counter, bool) {
	if name == "" {
		name = EstimateName
	}
	i, ok := slices.BinarySearchFunc(s, name, func(c Counter, name string) int { return cmp.Compare(c.Name(), name) })
	if !ok {
		return nil, false
	}
	return s[i], true
}

// Names returns the names in the set's order.
func (s Set) Names() []string {
	names := make([]string, len(s))
	for i, c := range s {
		names[i] = c.Name()
	}
	return names
}
