package bpe

import (
	"encoding/json"
	"fmt"

	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/split"
)

// readPreTokenizer reads what cuts texts into pieces: ByteLevel, or a sequence that ends with it.
func (r *rule) readPreTokenizer(raw json.RawMessage) error {
	if isNull(raw) {
		return fmt.Errorf("pre_tokenizer is missing: without ByteLevel in it the model is not a byte-level one")
	}
	done, err := r.readPart("pre_tokenizer", raw, false)
	if err == nil && !done {
		err = fmt.Errorf("pre_tokenizer does not end with ByteLevel: the model is not a byte-level one")
	}
	return err
}

// maxSplitters is how many pre-tokenisers there may be.
const maxSplitters = 16

// readPart reads one pre-tokeniser, and reports whether ByteLevel, which is the last, was read.
func (r *rule) readPart(key string, raw json.RawMessage, done bool) (bool, error) {
	o, err := readObject(key, raw, "type", "pretokenizers", "pattern", "behavior", "invert",
		"individual_digits", "add_prefix_space", "trim_offsets", "use_regex")
	if err != nil {
		return done, err
	}
	kind, err := o.text("type", "")
	if err != nil {
		return done, err
	}
	if kind == "Sequence" {
		if tooDeep(key) {
			return done, fmt.Errorf("%s is nested too deeply", key)
		}
		parts, err := o.list("pretokenizers")
		for i := 0; i < len(parts) && err == nil; i++ {
			done, err = r.readPart(fmt.Sprintf("%s[%d]", o.at("pretokenizers"), i), parts[i], done)
		}
		return done, err
	}
	if done {
		return done, fmt.Errorf("%s comes after ByteLevel: what it would make of bytes is not known", key)
	}
	if len(r.splitters) == maxSplitters {
		return done, fmt.Errorf("%s is one of more than %d", key, maxSplitters)
	}
	switch kind {
	case "Split":
		return false, r.readSplit(o)
	case "Digits":
		each, err := o.flag("individual_digits", false)
		r.splitters = append(r.splitters, split.Digits(each))
		return false, err
	case "ByteLevel":
		return true, r.readByteLevel(o)
	}
	return done, fmt.Errorf("%s is %.64q: only Split, Digits and ByteLevel, and sequences of them, are known", o.at("type"), kind)
}

func (r *rule) readSplit(o object) error {
	pattern, err := readObject(o.at("pattern"), o.values["pattern"], "Regex", "String")
	if err != nil {
		return err
	}
	expression, err := pattern.text("Regex", "")
	if err != nil {
		return err
	}
	splitter, ok := split.Known(expression)
	if !ok {
		return fmt.Errorf("%s is none of the expressions that are known", pattern.at("Regex"))
	}
	behavior, err := o.text("behavior", "")
	if err != nil {
		return err
	}
	invert, err := o.flag("invert", false)
	if err != nil {
		return err
	}
	isolated := behavior == "Isolated" && !invert
	// Where every piece is a match, to remove everything else leaves the same.
	if isolated = isolated || behavior == "Removed" && invert && splitter.Covers(); !isolated {
		return fmt.Errorf("%s is %.64q and invert %t: only Isolated, and Removed where nothing is, are known", o.at("behavior"), behavior, invert)
	}
	r.splitters = append(r.splitters, splitter)
	return nil
}

func (r *rule) readByteLevel(o object) (err error) {
	r.spacedAt = len(r.splitters)
	if r.spaced, err = o.flag("add_prefix_space", true); err != nil {
		return err
	}
	expression, err := o.flag("use_regex", true)
	if err == nil && expression {
		splitter, _ := split.Known(split.GPT2)
		r.splitters = append(r.splitters, splitter)
	}
	return err
}
