package memory

// keepBest rejects, of the live candidates of each group, all but the best.
func (s *selection) keepBest(g *groups, reason func(loser, winner *Candidate) Reason) {
	s.winners = resize(s.winners, g.count)
	for group := range s.winners {
		s.winners[group] = none
	}
	for i := range s.plan.Decisions {
		group := g.of[i]
		if group == none || s.plan.Decisions[i].Reason != undecided {
			continue
		}
		if best := s.winners[group]; best == none || s.beats(i, int(best)) {
			s.winners[group] = int32(i)
		}
	}
	for i := range s.plan.Decisions {
		d, group := &s.plan.Decisions[i], g.of[i]
		if group == none || d.Reason != undecided || s.winners[group] == int32(i) {
			continue
		}
		d.Winner = s.plan.Decisions[s.winners[group]].Candidate
		d.Reason = reason(&s.Candidates[d.Candidate], &s.Candidates[d.Winner])
	}
}

// beats reports whether the candidate at i, which is later in order than the one at best, is the
// better one all the same.
func (s *selection) beats(i, best int) bool {
	if s.Policy.Winner != MostRecent {
		return false
	}
	c, b := s.candidate(i), s.candidate(best)
	return c.Authority == b.Authority && c.Provenance.CapturedAt.Compare(b.Provenance.CapturedAt) > 0
}
