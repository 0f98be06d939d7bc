package merge

import (
	"slices"
	"sync"
)

// few is the length, in bytes, up to which a piece is merged by looking at every pair in each step.
const few = 96

// Count returns how many tokens the piece becomes. Its time grows with the piece's length n as
// n log n, and past a short piece it takes about 32 n bytes of memory.
func (v *Vocabulary) Count(piece []byte) int {
	switch {
	case len(piece) < 2:
		return len(piece)
	case v.has(piece):
		return 1
	case len(piece) == 2: // it would be one token if its bytes merged
		return 2
	case len(piece) <= few:
		return v.countFew(piece)
	default:
		s := scratches.Get().(*scratch)
		n := s.count(v, piece)
		if len(piece) <= maxKept {
			scratches.Put(s)
		}
		return n
	}
}

// countFew merges at the lowest of all pairs, the leftmost of equal ones, until none is left.
func (v *Vocabulary) countFew(piece []byte) int {
	var tokens, joined [few]uint32 // joined[i] is what tokens i and i+1 merge into
	n := len(piece)
	tokens[0] = uint32(piece[0])
	for i := 1; i < n; i++ {
		tokens[i] = uint32(piece[i])
		joined[i-1] = v.bytes[uint(piece[i-1])<<8|uint(piece[i])]
	}
	for n > 1 {
		lowest := least(joined[:n-1])
		if lowest == noToken {
			break
		}
		at := slices.Index(joined[:n-1], lowest)
		tokens[at] = lowest
		n--
		copy(tokens[at+1:n], tokens[at+2:n+1])
		copy(joined[at:n-1], joined[at+1:n])
		if at > 0 {
			joined[at-1] = v.join(tokens[at-1], lowest)
		}
		if at+1 < n {
			joined[at] = v.join(lowest, tokens[at+1])
		}
	}
	return n
}

// least returns the lowest token. It has no branch on a token, which would be as good as random.
func least(tokens []uint32) uint32 {
	a, b, c, d := uint32(noToken), uint32(noToken), uint32(noToken), uint32(noToken)
	for len(tokens) >= 4 {
		a, b, c, d = min(a, tokens[0]), min(b, tokens[1]), min(c, tokens[2]), min(d, tokens[3])
		tokens = tokens[4:]
	}
	for _, token := range tokens {
		a = min(a, token)
	}
	return min(a, b, c, d)
}

// scratch is what merging a long piece needs: a list of tokens that are linked, each standing where
// its first byte is, and a heap of the merges that are possible.
type scratch struct {
	tokens, joined []uint32 // joined[i] is what the token at i merges into with the next one
	before, after  []int32
	heap           []uint64 // merges, lowest first: the token made, then where
}

// maxKept is the length, in bytes, of the longest piece whose scratch is kept for the next one.
const maxKept = 1 << 20

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// count does what countFew does. The heap finds the next merge; one whose tokens have meanwhile
// merged otherwise is passed over.
func (s *scratch) count(v *Vocabulary, piece []byte) int {
	s.start(v, piece)
	n := len(piece)
	end := int32(n)
	for len(s.heap) > 0 {
		token, at := uint32(s.heap[0]>>32), int32(uint32(s.heap[0]))
		if s.joined[at] != token {
			s.pop()
			continue
		}
		gone := s.after[at]
		next := s.after[gone]
		s.joined[gone] = noToken
		s.tokens[at], s.after[at] = token, next
		n--
		s.joined[at] = noToken
		if next < end {
			s.before[next] = at
			s.joined[at] = v.join(token, s.tokens[next])
		}
		if s.joined[at] != noToken {
			s.heap[0] = uint64(s.joined[at])<<32 | uint64(at)
			s.down(0)
		} else {
			s.pop()
		}
		if at > 0 {
			left := s.before[at]
			s.joined[left] = v.join(s.tokens[left], token)
			s.push(left)
		}
	}
	return n
}

func (s *scratch) start(v *Vocabulary, piece []byte) {
	n := len(piece)
	s.tokens, s.joined = resize(s.tokens, n), resize(s.joined, n)
	s.before, s.after = resize(s.before, n), resize(s.after, n)
	s.heap = s.heap[:0]
	for i, b := range piece {
		s.tokens[i], s.joined[i] = uint32(b), noToken
		s.before[i], s.after[i] = int32(i-1), int32(i+1)
		if i+1 < n {
			s.joined[i] = v.bytes[uint(b)<<8|uint(piece[i+1])]
		}
		if s.joined[i] != noToken {
			s.heap = append(s.heap, uint64(s.joined[i])<<32|uint64(i))
		}
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
}

func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// push adds the merge that is possible at a place, if there is one.
func (s *scratch) push(at int32) {
	if s.joined[at] == noToken {
		return
	}
	merge := uint64(s.joined[at])<<32 | uint64(at)
	i := len(s.heap)
	s.heap = append(s.heap, merge)
	for i > 0 {
		parent := (i - 1) / 2
		if s.heap[parent] <= merge {
			break
		}
		s.heap[i] = s.heap[parent]
		i = parent
	}
	s.heap[i] = merge
}

func (s *scratch) pop() {
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	if last > 0 {
		s.down(0)
	}
}

func (s *scratch) down(i int) {
	heap := s.heap
	merge := heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1] < heap[child] {
			child++
		}
		if merge <= heap[child] {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = merge
}
