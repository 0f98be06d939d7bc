package memory

import (
	"cmp"
	"math"
	"slices"
)

// order sorts the candidates, those that a gate rejected included, by authority descending, score
// descending, source rank ascending, captured descending (unset is oldest) and id ascending
// (bytes), and opens the decisions in this order. As ids are unique, it is total.
func (s *selection) order() {
	for i := range s.items {
		it := &s.items[i]
		c := &s.Candidates[it.index]
		it.evidence = evidence(c)
		it.rank = c.SourceRank
	}
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
			Chars:     lineChars(&s.Candidates[it.index], s.Policy.Rendering),
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
