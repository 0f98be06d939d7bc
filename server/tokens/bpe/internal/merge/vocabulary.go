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

// Token is a token of several bytes, and the two that merge into it.
type Token struct {
	Left, Right uint32
	Text        []byte
}

// Vocabulary is tokens and the merges that make them. A token below 256 is that byte, the others are
// made by one merge each, and of two possible merges the one that makes the lower token goes first.
// It is safe for concurrent use.
type Vocabulary struct {
	bytes  [1 << 16]uint32 // by two bytes, what they merge into
	merged []uint64        // a hash table of left, right and what they merge into; 0 is free
	filter []uint64        // a bit for each hash of left and right that do merge; far smaller than merged
	short  []key           // a hash table of the tokens of at most 15 bytes; the zero key is free
	long   map[string]struct{}
	shift  struct{ merged, short uint8 }
	max    int // bytes of the longest token
}

// New returns the vocabulary in which tokens[i] is token 256 + i. No two may be made of the same ones,
// and merging the bytes of any must lead to it; whole are further pieces that are one token although
// merging does not lead there. There may be at most MaxTokens tokens. New keeps none of the texts.
func New(tokens []Token, whole []string) *Vocabulary {
	v := &Vocabulary{long: map[string]struct{}{}}
	for i := range v.bytes {
		v.bytes[i] = noToken
	}
	v.merged, v.shift.merged = table[uint64](len(tokens))
	v.filter = make([]uint64, len(v.merged)<<filterBits/64)
	v.short, v.shift.short = table[key](256 + len(tokens) + len(whole))

	for b := range 256 {
		v.add([]byte{byte(b)})
	}
	for i, t := range tokens {
		v.add(t.Text)
		if t.Left < 256 && t.Right < 256 {
			v.bytes[t.Left<<8|t.Right] = uint32(256 + i)
			continue
		}
		h := hashPair(t.Left, t.Right)
		bit := h >> (v.shift.merged - filterBits)
		v.filter[bit/64] |= 1 << (bit % 64)
		slot := int(h >> v.shift.merged)
		for v.merged[slot] != 0 {
			slot = (slot + 1) & (len(v.merged) - 1)
		}
		v.merged[slot] = uint64(t.Left)<<(2*idBits) | uint64(t.Right)<<idBits | uint64(256+i)
	}
	for _, s := range whole {
		v.add([]byte(s))
	}
	return v
}

// table returns an empty hash table for n entries, at most four fifths full, and by how much a hash is
// shifted to be a place in it.
func table[T any](n int) (slots []T, shift uint8) {
	log := max(bits.Len(uint(n+n/4)), 4)
	return make([]T, 1<<log), uint8(64 - log)
}

// join returns the token that the two merge into, or noToken.
func (v *Vocabulary) join(left, right uint32) uint32 {
	if left < 256 && right < 256 {
		return v.bytes[left<<8|right]
	}
	h := hashPair(left, right)
	if bit := h >> (v.shift.merged - filterBits); v.filter[bit/64]>>(bit%64)&1 == 0 {
		return noToken
	}
	want := uint64(left)<<idBits | uint64(right)
	slot := int(h >> v.shift.merged)
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

// filterBits is the logarithm of the bits that the filter has for each place in the table.
const filterBits = 3

func hashPair(left, right uint32) uint64 {
	return (uint64(left)<<idBits | uint64(right)) * 0x9E3779B97F4A7C15
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
