package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

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

// TokenizerFile is a token counter that a tokenizer.json file describes, one of the byte-level BPE kind.
type TokenizerFile struct {
	// Name is what a request calls the counter.
	Name string
	// Path is the file's.
	Path string
}

var tokenizerName = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,64}$`)

// ParseTokenizerFile reads NAME=FILE. The name has 1 to 64 ASCII letters, digits and . _ : / -, and is
// not that of a counter that every server has.
func ParseTokenizerFile(text string) (TokenizerFile, error) {
	name, path, _ := strings.Cut(text, "=")
	switch {
	case !tokenizerName.MatchString(name) || path == "":
		return TokenizerFile{}, errors.New("is not NAME=FILE, with a name of 1 to 64 ASCII letters, digits and . _ : / -")
	case slices.ContainsFunc(Tokenizers(), func(c tokens.Counter) bool { return c.Name() == name }):
		return TokenizerFile{}, errors.New("has the name of a tokenizer that is built in")
	}
	return TokenizerFile{Name: name, Path: path}, nil
}

// Load reads the file. It takes up to a second, and memory of many times the file's size for that long.
// What cannot be counted exactly is refused with the reason.
func (f TokenizerFile) Load() (tokens.Counter, error) {
	if info, err := os.Stat(f.Path); err == nil && !info.Mode().IsRegular() { // a pipe could keep it waiting for ever
		return nil, fmt.Errorf("%s: not a regular file", f.Path)
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, bpe.MaxFile+1)) // which Load refuses
	if err != nil {
		return nil, err
	}
	counter, err := bpe.Load(f.Name, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return counter, nil
}
