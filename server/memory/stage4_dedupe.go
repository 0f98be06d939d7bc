package memory

import (
	"bytes"
	"hash/maphash"
)

// dedupe keeps, of the candidates with the same text and the same slot (or none), both in
// normalised form, the best one. The same text in another slot states another fact and stays.
func (s *selection) dedupe() {
	s.normalizeSlots()
	s.joinSlots()
	s.joinSignatures()
	s.joinContents()
	s.keepBest(&s.contents, func(_, _ *Candidate) Reason { return DuplicateContent })
}

// slot returns the conflict key of the candidate at i in normalised form, empty if it has none.
func (s *selection) slot(i int) string { return s.plan.Decisions[i].NormalizedConflictKey }

// normalizeSlots normalises every candidate's conflict key, for all decisions show it. Those that
// are in normalised form already are not copied.
func (s *selection) normalizeSlots() {
	s.slotKeys, s.slotEnds = s.slotKeys[:0], resize(s.slotEnds, len(s.items))
	for i := range s.slotEnds {
		start, key := len(s.slotKeys), s.candidate(i).ConflictKey
		s.slotKeys = s.normalizer.append(s.slotKeys, key)
		if string(s.slotKeys[start:]) == key {
			s.slotKeys = s.slotKeys[:start]
		}
		s.slotEnds[i] = len(s.slotKeys)
	}

	keys, start := string(s.slotKeys), 0
	for i, end := range s.slotEnds {
		key := &s.plan.Decisions[i].NormalizedConflictKey
		if *key = s.candidate(i).ConflictKey; end > start {
			*key = keys[start:end]
		}
		start = end
	}
}

// joinSlots groups the live candidates that have a slot by it.
func (s *selection) joinSlots() {
	s.slots.reset(len(s.items))
	for i := range s.plan.Decisions {
		if key := s.slot(i); key != "" && s.plan.Decisions[i].Reason == undecided {
			s.slots.join(i, maphash.String(s.seed, key), func(first int) bool { return s.slot(first) == key })
		}
	}
}

// joinSignatures groups the live candidates by slot and by the signature of their text. What is
// alone in its group has no duplicate, and its text need not be normalised.
func (s *selection) joinSignatures() {
	s.signatures.reset(len(s.items))
	s.members = s.members[:0]
	for i := range s.plan.Decisions {
		if s.plan.Decisions[i].Reason != undecided {
			continue
		}
		group := s.signatures.join(i, inSlot(s.items[s.plan.Decisions[i].Candidate].signature, s.slots.of[i]), func(int) bool { return true })
		if int(group) == len(s.members) {
			s.members = append(s.members, 0)
		}
		s.members[group]++
	}
}

// inSlot returns the hash of what a text's hash stands for in one slot.
func inSlot(hash uint64, slot int32) uint64 { return hash + uint64(slot)*0x9E3779B97F4A7C15 }

// joinContents groups the live candidates of one signature by slot and normalised text.
func (s *selection) joinContents() {
	s.contents.reset(len(s.items))
	other := none // whose normalised text is at hand
	for i, group := range s.signatures.of {
		if group == none || s.members[group] == 1 {
			continue
		}
		if s.ctx.Err() != nil {
			return
		}
		c, slot := s.candidate(i), s.slots.of[i]
		s.text = s.normalizer.append(s.text[:0], c.Text)
		s.contents.join(i, inSlot(maphash.Bytes(s.seed, s.text), slot), func(first int) bool {
			if s.slots.of[first] != slot {
				return false
			}
			if s.candidate(first).Text == c.Text {
				return true
			}
			if other != int32(first) {
				other = int32(first)
				s.other = s.normalizer.append(s.other[:0], s.candidate(first).Text)
			}
			return bytes.Equal(s.other, s.text)
		})
	}
}
