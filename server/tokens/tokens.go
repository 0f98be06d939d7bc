// Package tokens counts the tokens of rendered texts. A counter is chosen by its name; the default,
// Estimate, is a budget unit and no vendor's token.
package tokens

import (
	"cmp"
	"slices"
)

// Counter counts tokens. It is safe for concurrent use, and the same text always gives the same
// count.
//
// Its counts add up where the service joins texts, so that no text is counted twice: for a that
// ends in "\n" after a '>' and b that starts with '<', and for a and b joined by the planner's
// separator, the count of the whole is the sum of the counts of its parts.
type Counter interface {
	// Name is what a request calls the counter.
	Name() string
	// Version names the counting rule; it changes whenever any count does.
	Version() string
	// Exact reports whether the counts are those of the model that the name stands for.
	Exact() bool
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
