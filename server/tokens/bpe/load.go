package bpe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/nfc"
	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/split"
)

// MaxFile is how many bytes a tokenizer.json may have.
const MaxFile = 64 << 20

// Load returns a counter of the given name that counts as PyPI's tokenizers does with the file, a
// tokenizer.json whose model is a byte-level BPE, without adding special tokens and with
// encode_special_tokens set. Special tokens are thus counted as the text they are written with, other
// added tokens as one each; truncation, padding, the post-processor and the decoder do not matter.
//
// What cannot be counted exactly is refused: the error names the key and says why. Load keeps nothing
// of file. It takes about a second for a vocabulary of 150,000 tokens, and up to 30 times the file's
// size of memory, most of which is free afterwards.
func Load(name string, file []byte) (*Counter, error) {
	r, additive, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	sum := sha256.Sum256(file)
	hash := "sha256:" + hex.EncodeToString(sum[:8])
	return &Counter{
		name:     name,
		version:  "1 (" + hash + ")",
		source:   "tokenizer.json, " + hash,
		additive: additive,
		rule:     func() *rule { return r },
	}, nil
}

func parse(file []byte) (r *rule, additive bool, err error) {
	if len(file) > MaxFile {
		return nil, false, fmt.Errorf("it has %d bytes, and %d at most are read", len(file), MaxFile)
	}
	if !utf8.Valid(file) {
		return nil, false, fmt.Errorf("it is not valid UTF-8")
	}
	top, err := readObject("", file, "version", "truncation", "padding", "added_tokens", "normalizer",
		"pre_tokenizer", "post_processor", "decoder", "model")
	if err != nil {
		return nil, false, err
	}
	if version, err := top.text("version", "1.0"); err != nil || version != "1.0" {
		return nil, false, fmt.Errorf("version is not \"1.0\", the only one there is")
	}
	r = &rule{}
	if err := r.readNormalizer("normalizer", top.values["normalizer"]); err != nil {
		return nil, false, err
	}
	if err := r.readPreTokenizer(top.values["pre_tokenizer"]); err != nil {
		return nil, false, err
	}
	contents, err := r.readAddedTokens(top.values["added_tokens"])
	if err != nil {
		return nil, false, err
	}
	if err := r.readModel(top.values["model"]); err != nil {
		return nil, false, err
	}
	return r, r.additive(contents), nil
}

// additive reports whether texts can be cut at the seams that Counter.Additive names.
//
// At each, one splitter ends a piece, and those before it leave the seam inside of a piece. Form C
// changes neither '<', '-', '"' nor the space, and composes none of them with what is before it; what
// comes after is an ASCII character. An added token that spans a seam, or that depends on a text's other
// side, has one of the sequences below in it; one that starts with '-' would decide how the white space
// before it is split. A piece that is given a space, as a text's first, is another one elsewhere.
func (r *rule) additive(added []string) bool {
	if r.spaced {
		return false
	}
	for _, seam := range split.Seams {
		i := slices.IndexFunc(r.splitters, func(s split.Splitter) bool { return s.Seam(seam) != split.Passes })
		if i < 0 || r.splitters[i].Seam(seam) != split.Cuts {
			return false
		}
	}
	for _, content := range added {
		if strings.HasPrefix(content, "-") {
			return false
		}
		for _, seam := range []string{"\n<", "\n-", "\" "} {
			if strings.Contains(content, seam) {
				return false
			}
		}
	}
	return true
}

// readNormalizer reads the normaliser at the given key; at most NFC, in any number of sequences.
func (r *rule) readNormalizer(key string, raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	o, err := readObject(key, raw, "type", "normalizers")
	if err != nil {
		return err
	}
	switch kind, err := o.text("type", ""); {
	case err != nil:
		return err
	case kind == "NFC":
		r.form = nfc.New()
		return nil
	case kind == "Sequence":
		if tooDeep(key) {
			return fmt.Errorf("%s is nested too deeply", key)
		}
		parts, err := o.list("normalizers")
		for i, part := range parts {
			if err := r.readNormalizer(fmt.Sprintf("%s[%d]", o.at("normalizers"), i), part); err != nil {
				return err
			}
		}
		return err
	default:
		return fmt.Errorf("%s is %.64q: only NFC is known", o.at("type"), kind)
	}
}

// readAddedTokens returns the contents of all added tokens.
func (r *rule) readAddedTokens(raw json.RawMessage) ([]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	list, err := readList("added_tokens", raw)
	if err != nil {
		return nil, err
	}
	var written, normalized addedTokens
	var counting [2]bool // whether any of the written, and of the normalised ones, counts as one
	seen := map[string]bool{}
	var contents []string
	for i, raw := range list {
		o, err := readObject(fmt.Sprintf("added_tokens[%d]", i), raw,
			"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
		if err != nil {
			return nil, err
		}
		t, err := o.addedToken()
		if err != nil {
			return nil, err
		}
		if t.normalized && r.form != nil {
			t.content = string(r.form.Append(nil, []byte(t.content)))
		}
		if seen[t.content] {
			return nil, fmt.Errorf("%s is %.64q for the second time", o.at("content"), t.content)
		}
		seen[t.content] = true
		contents = append(contents, t.content)
		if t.normalized {
			normalized.add(t.content, t.special)
			counting[1] = counting[1] || !t.special
		} else {
			written.add(t.content, t.special)
			counting[0] = counting[0] || !t.special
		}
	}
	if counting[0] {
		r.written = &written
	}
	if counting[1] {
		r.normalized = &normalized
	}
	return contents, nil
}

type addedToken struct {
	content             string
	normalized, special bool
}

// maxAdded is how many bytes an added token may have.
const maxAdded = 256

func (o object) addedToken() (t addedToken, err error) {
	if t.content, err = o.text("content", ""); err != nil {
		return t, err
	}
	switch {
	case t.content == "" || len(t.content) > maxAdded:
		return t, fmt.Errorf("%s has %d bytes: 1 to %d are taken", o.at("content"), len(t.content), maxAdded)
	case strings.ContainsRune(t.content, utf8.RuneError):
		return t, fmt.Errorf("%s has U+FFFD in it, which stands for what could not be read", o.at("content"))
	}
	if t.special, err = o.flag("special", false); err != nil {
		return t, err
	}
	if t.normalized, err = o.flag("normalized", !t.special); err != nil {
		return t, err
	}
	for _, key := range []string{"single_word", "lstrip", "rstrip"} {
		set, err := o.flag(key, false)
		if err != nil {
			return t, err
		}
		if set && !t.special {
			return t, fmt.Errorf("%s is true: of a token that is not special, what is around it is not looked at", o.at(key))
		}
	}
	return t, nil
}
