package bpe

import (
	"sync"

	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/merge"
	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/nfc"
	"github.com/promptassembly/promptassembly/server/tokens/bpe/internal/split"
)

// rule is what makes tokens of a text. Added tokens are taken out of it, the rest is normalised, more
// added tokens are taken out of that, the rest goes through the splitters one after another, and each
// piece is merged.
type rule struct {
	written    *addedTokens // nil if there are none
	form       *nfc.Form    // nil if texts stay as they are
	normalized *addedTokens // nil if there are none
	splitters  []split.Splitter
	spaced     bool // a piece that starts with no space gets one, before the splitter at spacedAt
	spacedAt   int
	vocabulary *merge.Vocabulary
}

func (r *rule) count(text []byte) int {
	if r.written == nil {
		return r.normalize(text)
	}
	n := 0
	for {
		start, end, ok := r.written.find(text)
		if !ok {
			return n + r.normalize(text)
		}
		n += r.normalize(text[:start]) + 1
		text = text[end:]
	}
}

func (r *rule) normalize(text []byte) int {
	if r.form == nil || r.form.Is(text) {
		return r.parts(text)
	}
	buf := buffers.Get().(*[]byte)
	*buf = r.form.Append((*buf)[:0], text)
	n := r.parts(*buf)
	buffers.Put(buf)
	return n
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (r *rule) parts(text []byte) int {
	if r.normalized == nil {
		return r.pieces(text, 0)
	}
	n := 0
	for {
		start, end, ok := r.normalized.find(text)
		if !ok {
			return n + r.pieces(text, 0)
		}
		n += r.pieces(text[:start], 0) + 1
		text = text[end:]
	}
}

func (r *rule) pieces(text []byte, from int) int {
	if r.spaced && from == r.spacedAt && len(text) > 0 && text[0] != ' ' {
		text = append([]byte{' '}, text...)
	}
	if from == len(r.splitters) {
		return r.vocabulary.Count(text)
	}
	splitter, n := r.splitters[from], 0
	for len(text) > 0 {
		end := splitter.Next(text)
		n += r.pieces(text[:end], from+1)
		text = text[end:]
	}
	return n
}
