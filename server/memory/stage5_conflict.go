package memory

// resolveConflicts keeps the best candidate of each slot. A loser stated what has been overruled:
// it never comes back, also when the winner does not fit later.
func (s *selection) resolveConflicts() {
	s.keepBest(&s.slots, func(loser, winner *Candidate) Reason {
		if loser.Authority < winner.Authority {
			return AuthorityLoser
		}
		return ConflictLoser
	})
}
