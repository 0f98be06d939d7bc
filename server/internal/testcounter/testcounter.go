// Package testcounter has token counters that are harder than those of models, for tests of what is
// computed from counts, and a check of what an additive counter promises.
package testcounter

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/promptassembly/promptassembly/server/tokens"
)

// Pieces is an additive counter. It cuts a text into pieces, as a model's counter does, that reach
// across words, spaces and line breaks, and has a token for every three bytes of a piece: almost
// nowhere but at a seam do counts add up.
type Pieces struct{ described }

// Merges is a counter that is not additive, whose tokens reach across every seam, and which often
// has fewer for a longer text.
type Merges struct{ described }

// Blocks is a counter that is not additive: every seven bytes of a text, and what is left, are one.
type Blocks struct{ described }

type described struct{}

// Name implements tokens.Counter.
func (described) Name() string { return "test" }

// Version implements tokens.Counter.
func (described) Version() string { return "1" }

// Source implements tokens.Counter.
func (described) Source() string { return "a test" }

// Exact implements tokens.Counter.
func (described) Exact() bool { return false }

// Additive implements tokens.Counter.
func (Pieces) Additive() bool { return true }

// Additive implements tokens.Counter.
func (Merges) Additive() bool { return false }

// Additive implements tokens.Counter.
func (Blocks) Additive() bool { return false }

var pieces = regexp.MustCompile(` ?\pL+| ?[^\s\pL]+[\r\n/]*|\s*[\r\n]+|\s+`)

// Count implements tokens.Counter.
func (Pieces) Count(text []byte) int {
	n := 0
	for _, piece := range pieces.FindAllIndex(text, -1) {
		n += (piece[1] - piece[0] + 2) / 3
	}
	return n
}

// merges are tokens of several bytes, the longest first; each other byte is one.
var merges = []string{
	"</memory_hit>\n<memory_hit", "</memory_hit>\n</recalled_memory>", "\n\n---\n\n", "\">\n<memory_hit ", `" source_id="`, `" selected="`,
	".\n\n-", "--\n\n", "\n</", ">\n<", "\n\n", "\n-", "aa",
}

// Count implements tokens.Counter.
func (Merges) Count(text []byte) int {
	n := 0
	for rest := string(text); rest != ""; n++ {
		size := 1
		for _, merge := range merges {
			if strings.HasPrefix(rest, merge) {
				size = len(merge)
				break
			}
		}
		rest = rest[size:]
	}
	return n
}

// Count implements tokens.Counter.
func (Blocks) Count(text []byte) int { return (len(text) + 6) / 7 }

// CheckSeams returns an error if the counter breaks a promise of an additive one where a and b are
// joined.
func CheckSeams(c tokens.Counter, a, b string) error {
	count := func(s string) int { return c.Count([]byte(s)) }
	for _, seam := range []struct{ before, after string }{
		{">\n", "<m"}, {">\n", "</"}, {">\n", "<Z"}, // 1
		{`"`, ` a="`}, {`"`, ` source_id="`}, {`="1"`, ` captured="`}, // 3
	} {
		left, right := a+seam.before, seam.after+b
		if whole, parts := count(left+right), count(left)+count(right); whole != parts {
			return fmt.Errorf("%q and %q have %d tokens, together %d", left, right, parts, whole)
		}
	}
	const separator, rest = "\n\n---\n\n", "---\n\n"
	if whole, parts := count(a+separator+b), count(a+separator)-count(rest)+count(rest+b); whole != parts {
		return fmt.Errorf("%q and %q have %d tokens when counted apart, joined by a separator %d", a, b, parts, whole)
	}
	return nil
}
