package server

import (
	"github.com/promptassembly/promptassembly/server/tokens"
	"github.com/promptassembly/promptassembly/server/tokens/bpe"
)

// Tokenizers returns the token counters that every server has: the estimate, and the embedded encodings
// by their own names and by those of the models that use them. What an encoding needs is read when it
// counts its first text.
func Tokenizers() []tokens.Counter {
	counters := []tokens.Counter{tokens.Estimate{}}
	for _, c := range bpe.Embedded() {
		counters = append(counters, c)
	}
	return counters
}
