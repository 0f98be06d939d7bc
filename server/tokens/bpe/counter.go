// Package bpe counts tokens exactly as byte-pair encodings make them: cl100k_base and o200k_base,
// which are embedded, and those that a tokenizer.json file describes.
//
// A text is counted as a text, without the tokens that a model's template puts around it, and what
// looks like a special token in it is counted as the characters it is written with.
package bpe

// Counter counts tokens. It is safe for concurrent use, and takes time for its rule only at the
// first Count.
type Counter struct {
	name, version, source string
	additive              bool
	rule                  func() *rule
}

// Name is what a request calls the counter.
func (c *Counter) Name() string { return c.name }

// Version names the counting rule; it changes whenever any count does.
func (c *Counter) Version() string { return c.version }

// Source says, for people, where the rule comes from.
func (c *Counter) Source() string { return c.source }

// Exact reports that the counts are those of the model that the name stands for.
func (*Counter) Exact() bool { return true }

// Additive reports whether a text can be cut into parts that are counted by themselves:
//
//  1. after ">\n", where "<" and an ASCII letter or "/" follow;
//  2. between the second "\n" and the first "-" of "\n\n---\n\n";
//  3. after `"`, where one space, ASCII letters and `="` follow.
//
// No token spans such a seam and neither side's tokens depend on the other side, with one exception:
// the tokens before a seam of the second kind may be others than if nothing followed.
func (c *Counter) Additive() bool { return c.additive }

// Count returns the tokens of text, which is valid UTF-8. It neither keeps nor changes text. The time
// it takes grows with the text's length n as n log n at most, and it takes about 32 bytes of memory
// for each byte of the longest run of letters, or of other characters of one kind.
func (c *Counter) Count(text []byte) int { return c.rule().count(text) }
