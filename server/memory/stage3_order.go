package memory

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
)

// measure reads what the later stages need of each candidate's strings, in the order in which they
// lie in memory: sorted, they would be read in a random one, which takes several times as long.
func (s *selection) measure() {
	for i := range s.items {
		it, c := &s.items[i], &s.Candidates[i]
		it.evidence, it.rank = evidence(c), c.SourceRank
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
	slices.SortFunc(s.items, func(a, b item) int {
		if a.evidence != b.evidence {
			return cmp.Compare(b.evidence, a.evidence)
		}
		if a.rank != b.rank {
			return cmp.Compare(a.rank, b.rank)
		}
		c, d := &s.Candidates[a.index], &s.Candidates[b.index]
		if captured := d.Provenance.CapturedAt.Compare(c.Provenance.CapturedAt); captured != 0 {
			return captured
		}
		return cmp.Compare(c.ID, d.ID)
	})

	s.plan.Decisions = make([]Decision, len(s.items))
	for i, it := range s.items {
		s.plan.Decisions[i] = Decision{
			Candidate: int(it.index),
			Reason:    it.reason,
			Chars:     int(it.chars),
			Winner:    -1,
		}
	}
}

// evidence packs authority and score into one number that orders as the two do: the bits of a score
// from 0 to 1 order as the score does, and their two highest are zero.
func evidence(c *Candidate) uint64 {
	score := c.Score + 0 // -0 becomes 0
	return uint64(c.Authority)<<62 | math.Float64bits(score)
}
