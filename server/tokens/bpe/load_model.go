package bpe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/merge"
)

const (
	// maxToken is how many bytes a token may have.
	maxToken = 512
	// maxMerges is how many merges there may be; a token can be made by several.
	maxMerges = 1 << 21
)

// model is what a byte-level BPE is made of. A token is known by its place: that of a byte is the byte.
type model struct {
	places map[string]uint32 // of tokens, by their bytes
	texts  []string          // by place
	merges map[[2]uint32]merged
}

// merged is what two tokens merge into, and how early among all merges.
type merged struct{ rank, place uint32 }

func (r *rule) readModel(raw json.RawMessage) error {
	o, err := readObject("model", raw, "type", "dropout", "unk_token", "continuing_subword_prefix",
		"end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges")
	if err != nil {
		return err
	}
	if err := o.isPlainBPE(); err != nil {
		return err
	}
	whole, err := o.flag("ignore_merges", false)
	if err != nil {
		return err
	}
	m := &model{places: map[string]uint32{}, merges: map[[2]uint32]merged{}}
	if err := m.readVocab(o.values["vocab"]); err != nil {
		return err
	}
	if err := m.readMerges(o.values["merges"]); err != nil {
		return err
	}
	r.vocabulary = m.vocabulary(whole)
	return nil
}

// isPlainBPE refuses other models, and what would change how a BPE counts.
func (o object) isPlainBPE() error {
	kind, err := o.text("type", "BPE") // old files of GPT-2 do not say
	if err != nil {
		return err
	}
	if kind != "BPE" {
		return fmt.Errorf("model.type is %.64q: only byte-level BPE is counted exactly", kind)
	}
	for _, name := range []string{"continuing_subword_prefix", "end_of_word_suffix"} {
		if s, err := o.text(name, ""); err != nil || s != "" {
			return fmt.Errorf("%s is set: tokens that differ inside of words are not byte-level", o.at(name))
		}
	}
	if fallback, err := o.flag("byte_fallback", false); err != nil || fallback {
		return fmt.Errorf("model.byte_fallback is true: a model that falls back to bytes is not byte-level")
	}
	if raw := o.values["dropout"]; !isNull(raw) {
		var dropout float64
		if json.Unmarshal(raw, &dropout) != nil || dropout != 0 {
			return fmt.Errorf("model.dropout is set: merges that are left out by chance cannot be counted")
		}
	}
	return nil
}

// readVocab gives every token its place. The ids in the file do not matter, but that they differ.
func (m *model) readVocab(raw json.RawMessage) error {
	ids := map[uint32]struct{}{}
	names := map[string]struct{}{}
	var several []string // the tokens of several bytes
	err := eachField("model.vocab", raw, func(name string, value *json.Decoder) error {
		var read *uint32
		if err := value.Decode(&read); err != nil || read == nil {
			return fmt.Errorf("model.vocab[%.64q] is no id", name)
		}
		id := *read
		if _, ok := ids[id]; ok {
			return fmt.Errorf("model.vocab[%.64q] is %d, as another token is", name, id)
		}
		ids[id] = struct{}{}
		if len(ids) > merge.MaxTokens {
			return fmt.Errorf("model.vocab has more than %d tokens", merge.MaxTokens)
		}
		if _, ok := names[name]; ok || name == "" {
			return fmt.Errorf("model.vocab has the token %.64q twice, or it is empty", name)
		}
		names[name] = struct{}{}
		text, ok := fromByteLevel(name)
		switch {
		case !ok: // no text has it
		case len(text) > maxToken:
			return fmt.Errorf("model.vocab has a token of %d bytes, and %d are the most", len(text), maxToken)
		case len(text) == 1:
			m.places[text] = uint32(text[0])
		default:
			several = append(several, text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.texts = make([]string, 256, 256+len(several))
	for b := range m.texts {
		m.texts[b] = string([]byte{byte(b)})
		if _, ok := m.places[m.texts[b]]; !ok {
			return fmt.Errorf("model.vocab lacks the byte 0x%02X: the model is not byte-level", b)
		}
	}
	for _, text := range several {
		m.places[text] = uint32(len(m.texts))
		m.texts = append(m.texts, text)
	}
	return nil
}

func (m *model) readMerges(raw json.RawMessage) error {
	pairs, err := readPairs(raw)
	if err != nil {
		return err
	}
	for rank, names := range pairs {
		var pair [2]uint32
		text := ""
		for i, name := range names {
			part, ok := fromByteLevel(name)
			if pair[i], ok = m.place(part, ok); !ok {
				return fmt.Errorf("model.merges[%d] names the token %.64q, which is not in model.vocab or not of bytes", rank, name)
			}
			text += part
		}
		place, ok := m.places[text]
		if !ok {
			return fmt.Errorf("model.merges[%d] makes the token %.64q, which is not in model.vocab", rank, names[0]+names[1])
		}
		if _, ok := m.merges[pair]; ok {
			return fmt.Errorf("model.merges[%d] is there for the second time", rank)
		}
		m.merges[pair] = merged{uint32(rank), place}
	}
	return nil
}

func (m *model) place(text string, ok bool) (uint32, bool) {
	if !ok {
		return 0, false
	}
	place, ok := m.places[text]
	return place, ok
}

// readPairs reads the merges, which are all written as "a b", or all as ["a", "b"].
func readPairs(raw json.RawMessage) ([][]string, error) {
	if isNull(raw) {
		return nil, fmt.Errorf("model.merges is missing")
	}
	if bytes.Count(raw, []byte(",")) > 2*maxMerges {
		return nil, fmt.Errorf("model.merges has more than %d elements", maxMerges)
	}
	var pairs [][]string
	var lines []string
	switch {
	case json.Unmarshal(raw, &lines) == nil:
		for _, line := range lines {
			pairs = append(pairs, strings.Split(line, " "))
		}
	case json.Unmarshal(raw, &pairs) != nil:
		return nil, fmt.Errorf("model.merges is neither a list of strings nor one of pairs")
	}
	for rank, pair := range pairs {
		if len(pair) != 2 {
			return nil, fmt.Errorf("model.merges[%d] is not two tokens", rank)
		}
	}
	if len(pairs) > maxMerges {
		return nil, fmt.Errorf("model.merges has more than %d elements", maxMerges)
	}
	return pairs, nil
}

// vocabulary numbers the tokens anew, in the order in which merges make them. Of several merges into
// one token only that is of use that merging the token's own bytes ends with: the steps that lead to a
// token are the same ones wherever it stands. A token to which they do not lead is never made, but if
// whole is set it still is one where it is a whole piece.
func (m *model) vocabulary(whole bool) *merge.Vocabulary {
	type made struct {
		place, rank uint32
		parts       [2]uint32
	}
	var reached []made
	var pieces []string
	for place := 256; place < len(m.texts); place++ {
		parts, ok := m.lastMerge(m.texts[place])
		if ok {
			reached = append(reached, made{uint32(place), m.merges[parts].rank, parts})
		} else if whole {
			pieces = append(pieces, m.texts[place])
		}
	}
	slices.SortFunc(reached, func(a, b made) int { return cmp.Compare(a.rank, b.rank) })
	ids := make([]uint32, len(m.texts))
	for b := range 256 {
		ids[b] = uint32(b)
	}
	for i, t := range reached {
		ids[t.place] = uint32(256 + i)
	}
	tokens := make([]merge.Token, len(reached))
	for i, t := range reached {
		tokens[i] = merge.Token{Left: ids[t.parts[0]], Right: ids[t.parts[1]], Text: []byte(m.texts[t.place])}
	}
	return merge.New(tokens, pieces)
}

// lastMerge merges the bytes of a text, and returns the last two tokens if they make one of all.
func (m *model) lastMerge(text string) (last [2]uint32, ok bool) {
	var tokens [maxToken]uint32
	var joins [maxToken]merged
	none := merged{rank: math.MaxUint32}
	join := func(left, right uint32) merged {
		if j, ok := m.merges[[2]uint32{left, right}]; ok {
			return j
		}
		return none
	}
	n := len(text)
	for i := range n {
		tokens[i] = uint32(text[i])
		if i > 0 {
			joins[i-1] = join(tokens[i-1], tokens[i])
		}
	}
	for n > 1 {
		at := 0
		for i := 1; i < n-1; i++ {
			if joins[i].rank < joins[at].rank {
				at = i
			}
		}
		if joins[at] == none {
			return last, false
		}
		last = [2]uint32{tokens[at], tokens[at+1]}
		tokens[at] = joins[at].place
		n--
		copy(tokens[at+1:n], tokens[at+2:n+1])
		copy(joins[at:n-1], joins[at+1:n])
		if at > 0 {
			joins[at-1] = join(tokens[at-1], tokens[at])
		}
		if at+1 < n {
			joins[at] = join(tokens[at], tokens[at+1])
		}
	}
	return last, true
}

// fromByteLevel returns the bytes that a name stands for. In it each byte is one character: those of
// Latin-1 that are seen are themselves, the others are U+0100 and following.
func fromByteLevel(name string) (string, bool) {
	text := make([]byte, 0, len(name))
	for _, r := range name {
		b, ok := byteLevel[r]
		if !ok {
			return "", false
		}
		text = append(text, b)
	}
	return string(text), true
}

var byteLevel = func() map[rune]byte {
	table := map[rune]byte{}
	unseen := rune(0x100)
	for b := range rune(256) {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF {
			table[b] = byte(b)
			continue
		}
		table[unseen] = byte(b)
		unseen++
	}
	return table
}()
