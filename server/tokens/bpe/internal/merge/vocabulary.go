// Package merge counts what byte-pair merging makes of a piece of text.
package merge

import (
	"encoding/binary"
	"math/bits"
)

// MaxTokens is how many tokens a vocabulary may have.
const MaxTokens = 1 << idBits

const (
	idBits  = 20
	noToken = MaxTokens // larger than every id
)

// Pair is two tokens that merge into one.
type Pair struct{ Left, Right uint32 }

// Vocabulary is tokens and the merges that make them. A token below 256 is that byte, the others are
// made by one merge each, and of two possible merges the one that makes the lower token goes first.
// It is safe for concurrent use.
type Vocabulary struct {
	bytes  [1 << 16]uint32 // by two bytes, what they merge into
	merged []uint64        // a hash table of left, right and what they merge into; 0 is free
	short  []key           // a hash table of the tokens of at most 15 bytes; the zero key is free
	long   map[string]struct{}
	shift  struct{ merged, short uint8 }
	max    int // bytes of the longest token
}

// New returns the vocabulary in which pairs[i] makes token 256 + i of two lower ones. No pair may
// occur twice, and merging the bytes of any token must lead to it; whole are further pieces that are
// one token although merging does not lead there. There may be at most MaxTokens tokens.
func New(pairs []Pair, whole []string) *Vocabulary {
	v := &Vocabulary{long: map[string]struct{}{}}
	for i := range v.bytes {
		v.bytes[i] = noToken
	}
	v.merged, v.shift.merged = table[uint64](len(pairs))
	v.short, v.shift.short = table[key](256 + len(pairs) + len(whole))

	texts := newTexts(pairs)
	for b := range 256 {
		v.add([]byte{byte(b)})
	}
	for i, p := range pairs {
		v.add(texts.of(256 + i))
		if p.Left < 256 && p.Right < 256 {
			v.bytes[p.Left<<8|p.Right] = uint32(256 + i)
			continue
		}
		slot := v.slot(p.Left, p.Right)
		for v.merged[slot] != 0 {
			slot = (slot + 1) & (len(v.merged) - 1)
		}
		v.merged[slot] = uint64(p.Left)<<(2*idBits) | uint64(p.Right)<<idBits | uint64(256+i)
	}
	for _, s := range whole {
		v.add([]byte(s))
	}
	return v
}

// texts is the bytes of the tokens that merges make, one after another.
type texts struct {
	bytes []byte
	ends  []int
}

func newTexts(pairs []Pair) texts {
	t := texts{bytes: make([]byte, 256, 256+8*len(pairs)), ends: make([]int, 256, 256+len(pairs))}
	for b := range 256 {
		t.bytes[b], t.ends[b] = byte(b), b+1
	}
	for _, p := range pairs {
		t.bytes = append(append(t.bytes, t.of(int(p.Left))...), t.of(int(p.Right))...)
		t.ends = append(t.ends, len(t.bytes))
	}
	return t
}

func (t texts) of(token int) []byte {
	if token == 0 {
		return t.bytes[:1]
	}
	return t.bytes[t.ends[token-1]:t.ends[token]]
}

// table returns an empty hash table for n entries, at most half full, and by how much a hash is
// shifted to be a place in it.
func table[T any](n int) (slots []T, shift uint8) {
	log := max(bits.Len(uint(2*n)), 1)
	return make([]T, 1<<log), uint8(64 - log)
}

// join returns the token that the two merge into, or noToken.
func (v *Vocabulary) join(left, right uint32) uint32 {
	if left < 256 && right < 256 {
		return v.bytes[left<<8|right]
	}
	want := uint64(left)<<idBits | uint64(right)
	slot := v.slot(left, right)
	for {
		entry := v.merged[slot&(len(v.merged)-1)]
		if entry>>idBits == want {
			return uint32(entry & (1<<idBits - 1))
		}
		if entry == 0 {
			return noToken
		}
		slot++
	}
}

func (v *Vocabulary) slot(left, right uint32) int {
	return int((uint64(left)<<idBits | uint64(right)) * 0x9E3779B97F4A7C15 >> v.shift.merged)
}

// maxShort is the longest text, in bytes, that a key holds.
const maxShort = 15

// key is a text of at most maxShort bytes, with its length in the highest byte. That of a token is
// not zero, as no token is empty.
type key struct{ low, high uint64 }

func keyOf(text []byte) key {
	n := len(text)
	k := key{high: uint64(n) << 56}
	switch {
	case n >= 8:
		k.low = binary.LittleEndian.Uint64(text)
		k.high |= binary.LittleEndian.Uint64(text[n-8:]) >> (8 * (16 - n))
	case n >= 4:
		k.low = uint64(binary.LittleEndian.Uint32(text)) | uint64(binary.LittleEndian.Uint32(text[n-4:]))<<(8*(n-4))
	default:
		k.low = uint64(text[0]) | uint64(text[n/2])<<(8*(n/2)) | uint64(text[n-1])<<(8*(n-1))
	}
	return k
}

func (k key) hash() uint64 {
	high, low := bits.Mul64(k.low^0x9E3779B97F4A7C15, k.high^0xD6E8FEB86659FD93)
	return high ^ low
}

// add makes text, which is not empty, a piece that is one token.
func (v *Vocabulary) add(text []byte) {
	v.max = max(v.max, len(text))
	if len(text) > maxShort {
		v.long[string(text)] = struct{}{}
		return
	}
	k := keyOf(text)
	slot := int(k.hash() >> v.shift.short)
	for v.short[slot] != (key{}) && v.short[slot] != k {
		slot = (slot + 1) & (len(v.short) - 1)
	}
	v.short[slot] = k
}

// has reports whether text is one token. It must not be empty.
func (v *Vocabulary) has(text []byte) bool {
	if len(text) > maxShort {
		if len(text) > v.max {
			return false
		}
		_, ok := v.long[string(text)]
		return ok
	}
	k := keyOf(text)
	slot := int(k.hash() >> v.shift.short)
	for {
		entry := v.short[slot&(len(v.short)-1)]
		if entry == k {
			return true
		}
		if entry == (key{}) {
			return false
		}
		slot++
	}
}

// Size is about how many bytes of memory v takes.
func (v *Vocabulary) Size() int {
	n := len(v.bytes)*4 + cap(v.merged)*8 + cap(v.short)*16
	for s := range v.long {
		n += 2*16 + len(s)
	}
	return n
}
