package memory

// Recall is what a retriever found, but for its hits, and what the caller says of them.
type Recall struct {
	// Scope is the scope of each hit that names none.
	Scope string
	// ConflictKeys gives hits a slot, by memory id; an empty value is none.
	ConflictKeys map[string]string
	// Authorities gives hits an authority, by memory id; a hit that is not named is UserDefault.
	Authorities map[string]Authority
}

// Hit is one record that a retriever found.
type Hit struct {
	// ID is the record's stable identity.
	ID string
	// Rank is the retriever's, 1 is best.
	Rank uint32
	// Snippet is what would enter the prompt.
	Snippet string
	// Scope says who owns the record; empty is the recall's.
	Scope string
	// Provenance says where the record came from.
	Provenance Provenance
	// Score is the retriever's similarity, 0 to 1.
	Score float64
}

// Candidate adapts a hit. It copies scope, score, rank and provenance and recomputes nothing.
func (r Recall) Candidate(h Hit) Candidate {
	c := Candidate{
		ID:          h.ID,
		Text:        h.Snippet,
		Scope:       h.Scope,
		Score:       h.Score,
		SourceRank:  h.Rank,
		Provenance:  h.Provenance,
		ConflictKey: r.ConflictKeys[h.ID],
		Authority:   r.Authorities[h.ID],
	}
	if c.Scope == "" {
		c.Scope = r.Scope
	}
	return c
}
