package memory

// gateConfidence rejects what scores below the policy's least score. It is a gate and no order: a
// weak match does not come back because there is room.
func (s *selection) gateConfidence() {
	for i := range s.items {
		it := &s.items[i]
		if it.reason == undecided && s.Candidates[i].Score < s.Policy.MinScore {
			it.reason = LowConfidence
		}
	}
}
