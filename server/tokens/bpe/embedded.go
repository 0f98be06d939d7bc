package bpe

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the merges
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/merge"
	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/split"
)

// Made by .ci/tokens/merges.mjs, which says what is in them; see LICENSE-tiktoken.
var (
	//go:embed cl100k_base.merges.gz
	cl100kMerges []byte
	//go:embed o200k_base.merges.gz
	o200kMerges []byte
)

// encodings are the embedded encodings with the names of the models that use them, as the model table
// of tiktoken has them. What the table knows only by a name's beginning is not here.
var encodings = []struct {
	name   string
	rule   func() *rule
	models []string
}{
	{"cl100k_base", embeddedRule(&cl100kMerges, split.CL100K), []string{
		"babbage-002", "davinci-002",
		"gpt-3.5", "gpt-3.5-turbo", "gpt-3.5-turbo-16k", "gpt-3.5-turbo-instruct", "gpt-35-turbo",
		"gpt-4", "gpt-4-32k", "gpt-4-turbo",
		"text-embedding-3-large", "text-embedding-3-small", "text-embedding-ada-002",
	}},
	{"o200k_base", embeddedRule(&o200kMerges, split.O200K), []string{
		"chatgpt-4o-latest",
		"gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini",
		"gpt-5", "gpt-5-chat-latest", "gpt-5-mini", "gpt-5-nano",
		"o1", "o1-mini", "o1-preview", "o1-pro", "o3", "o3-mini", "o4-mini",
	}},
}

// Embedded returns the counters of the embedded encodings, and one for each name of a model that uses
// them. An encoding is read at its first Count, once for all of its names.
func Embedded() []*Counter {
	var counters []*Counter
	for _, e := range encodings {
		for _, name := range append([]string{e.name}, e.models...) {
			counters = append(counters, &Counter{
				name:     name,
				version:  "1 (Unicode 16.0)",
				source:   "tiktoken " + e.name + ", embedded",
				additive: true,
				rule:     e.rule,
			})
		}
	}
	return counters
}

// embeddedRule returns a function that reads the rule when it is first called.
func embeddedRule(packed *[]byte, expression string) func() *rule {
	return sync.OnceValue(func() *rule {
		tokens, err := unpack(*packed)
		splitter, ok := split.Known(expression)
		if err != nil || !ok {
			panic(fmt.Sprintf("bpe: an embedded encoding is broken: %v", err))
		}
		return &rule{splitters: []split.Splitter{splitter}, vocabulary: merge.New(tokens, nil)}
	})
}

// unpack returns the tokens of several bytes. Each is made of two before it.
func unpack(packed []byte) ([]merge.Token, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	blocks := make([]byte, binary.LittleEndian.Uint32(packed[len(packed)-4:])) // the size is at the end
	if _, err := io.ReadFull(reader, blocks); err != nil {
		return nil, err
	}
	n := len(blocks) / 6
	tokens := make([]merge.Token, n)
	texts := make([]byte, 256, 256+8*n)
	for b := range texts {
		texts[b] = byte(b)
	}
	text := func(id uint32) []byte {
		if id < 256 {
			return texts[id : id+1]
		}
		return tokens[id-256].Text
	}
	for i := range tokens {
		at := func(block int) uint32 { return uint32(blocks[block*n+i]) }
		t := &tokens[i]
		t.Left, t.Right = at(0)|at(1)<<8|at(2)<<16, at(3)|at(4)<<8|at(5)<<16
		start := len(texts)
		texts = append(append(texts, text(t.Left)...), text(t.Right)...)
		t.Text = texts[start:len(texts):len(texts)]
	}
	return tokens, nil
}
