package memory

import (
	"cmp"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
)

// measure reads what the later stages need of each candidate's strings, in the order in which they
// lie in memory: sorted, they would be read in a random one, which takes several times as long.
func (s *selection) measure() {
	for i := range s.items {
		if i%16 == 0 && s.ctx.Err() != nil {
			return
		}
		it, c := &s.items[i], &s.Candidates[i]
		it.chars = uint32(lineChars(c, s.Policy.Rendering))
		if it.reason == undecided {
			sig := s.normalizer.sign(c.Text)
			it.signature = maphash.Bytes(s.seed, sig[:])
		}
	}
}

// order sorts the candidates, those that a gate rejected included, by authority descending, score
// descending, source rank ascending, captured descending (unset is oldest) and id ascending
// (bytes), and opens the decisions in this order. As ids are unique, it is total.
func (s *selection) order() {
	// A number holds most of a candidate's evidence, and its index: numbers sort several times as
	// fast as what they stand for.
	indexBits := bits.Len(uint(len(s.items)))
	s.keys = resize(s.keys, len(s.items))
	for i := range s.keys {
		s.keys[i] = ^evidence(&s.Candidates[i])>>indexBits<<indexBits | uint64(i)
	}
	slices.Sort(s.keys)
	index := func(key uint64) int { return int(key & (1<<indexBits - 1)) }

	// What shares that much evidence is compared in full.
	for start := 0; start < len(s.keys); {
		end := start + 1
		for end < len(s.keys) && s.keys[end]>>indexBits == s.keys[start]>>indexBits {
			end++
		}
		slices.SortFunc(s.keys[start:end], func(a, b uint64) int {
			return compare(&s.Candidates[index(a)], &s.Candidates[index(b)])
		})
		start = end
	}

	s.plan.Decisions = make([]Decision, len(s.keys))
	for i, key := range s.keys {
		it := &s.items[index(key)]
		s.plan.Decisions[i] = Decision{
			Candidate: index(key),
			Reason:    it.reason,
			Chars:     int(it.chars),
			Winner:    -1,
		}
	}
}

// compare is the order of candidates.
func compare(c, d *Candidate) int {
	return cmp.Or(
		cmp.Compare(evidence(d), evidence(c)),
		cmp.Compare(c.SourceRank, d.SourceRank),
		d.Provenance.CapturedAt.Compare(c.Provenance.CapturedAt),
		cmp.Compare(c.ID, d.ID),
	)
}

// evidence packs authority and score into one number that orders as the two do: the bits of a score
// from 0 to 1 order as the score does, and their two highest are zero.
func evidence(c *Candidate) uint64 {
	score := c.Score + 0 // -0 becomes 0
	return uint64(c.Authority)<<62 | math.Float64bits(score)
}
