// Package split cuts a text into the pieces that byte-pair merging then works on, as the regular
// expressions of the reference implementations do.
package split

import (
	_ "embed" // the table
	"encoding/binary"
	"sync"
	"unicode/utf8"
)

// class says what a code point is, in Unicode 16.0 as the reference implementations know it.
type class uint8

const (
	upper  class = 1 << iota // Lu or Lt
	lower                    // Ll
	plain                    // a letter without case, Lm or Lo
	mark                     // M
	number                   // N
	space                    // White_Space
	punct                    // P
	symbol                   // S

	letter = upper | lower | plain
)

// classTable holds the class of every code point, in blocks of 256, equal ones once.
type classTable struct {
	ascii  [utf8.RuneSelf]class
	blocks [][256]class
	places [(utf8.MaxRune + 1) / 256]uint16 // of the blocks
}

//go:embed classes.bin
var classRuns []byte

// classes is read at its first use, in a few milliseconds.
var classes = sync.OnceValue(func() *classTable {
	t := &classTable{}
	seen := map[[256]class]uint16{}
	var block [256]class
	n := 0
	for runs := classRuns; len(runs) > 0; {
		c := class(runs[0])
		length, size := binary.Uvarint(runs[1:])
		runs = runs[1+size:]
		for range length {
			block[n%256] = c
			n++
			if n%256 != 0 {
				continue
			}
			place, ok := seen[block]
			if !ok {
				place = uint16(len(t.blocks))
				seen[block] = place
				t.blocks = append(t.blocks, block)
			}
			t.places[n/256-1] = place
		}
	}
	copy(t.ascii[:], t.blocks[t.places[0]][:])
	return t
})

// at returns the class of the code point that text starts with, and its length in bytes; 0, 0 at the
// text's end.
func (t *classTable) at(text []byte) (c class, size int) {
	if len(text) == 0 {
		return 0, 0
	}
	if text[0] < utf8.RuneSelf {
		return t.ascii[text[0]], 1
	}
	r, size := decode(text)
	return t.of(r), size
}

func (t *classTable) of(r rune) class { return t.blocks[t.places[r>>8]][r&0xFF] }

// decode returns the code point, not ASCII, that text starts with. It is quick at those of three
// bytes, of which Chinese and Japanese texts are made.
func decode(text []byte) (r rune, size int) {
	if len(text) >= 3 && text[0]&0xF0 == 0xE0 {
		return rune(text[0]&0x0F)<<12 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), 3
	}
	return utf8.DecodeRune(text)
}

// run returns where the code points of the given classes that start at text[i] end.
func (t *classTable) run(text []byte, i int, of class) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if t.ascii[b]&of == 0 {
				return i
			}
			i++
			continue
		}
		r, size := decode(text[i:])
		if t.of(r)&of == 0 {
			return i
		}
		i += size
	}
	return i
}

// runWithout returns where the code points of other than the given classes end.
func (t *classTable) runWithout(text []byte, i int, of class) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if t.ascii[b]&of != 0 {
				return i
			}
			i++
			continue
		}
		r, size := decode(text[i:])
		if t.of(r)&of != 0 {
			return i
		}
		i += size
	}
	return i
}

// upTo returns where the code points of the given classes end, most of them at the latest.
func (t *classTable) upTo(most int, text []byte, i int, of class) int {
	for range most {
		c, size := t.at(text[i:])
		if c&of == 0 {
			break
		}
		i += size
	}
	return i
}
