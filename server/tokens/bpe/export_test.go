package bpe

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/split"
)

// Fresh returns a counter of the embedded encoding that has not counted yet.
func Fresh(name string) *Counter {
	packed, expression := &cl100kMerges, split.CL100K
	if name == "o200k_base" {
		packed, expression = &o200kMerges, split.O200K
	}
	return &Counter{name: name, rule: embeddedRule(packed, expression)}
}

// Texts returns the tokens of several bytes of the embedded encoding, by rank.
func Texts(t testing.TB, name string) [][]byte {
	packed := cl100kMerges
	if name == "o200k_base" {
		packed = o200kMerges
	}
	tokens, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([][]byte, len(tokens))
	for i := range tokens {
		texts[i] = tokens[i].Text
	}
	return texts
}
