package memory

// gateScope rejects what belongs to another scope. Scopes are compared byte for byte: neither case,
// nor prefix, nor white space makes two of them one.
func (s *selection) gateScope() {
	for i := range s.items {
		if s.Candidates[i].Scope != s.Scope {
			s.items[i].reason = ScopeMismatch
		}
	}
}
