// Package memory decides which recalled memories enter a prompt, and renders them.
//
// Select runs the stages in their order: scope gate, confidence gate, order, exact dedupe, conflict
// slots, packing. It is pure: the same request gives the same plan, whatever the order of its
// candidates.
package memory

import (
	"cmp"
	"time"
)

// Candidate is one memory that may enter the prompt. All strings are valid UTF-8.
type Candidate struct {
	// ID is the memory's stable identity, unique among the candidates.
	ID string
	// Text is what would enter the prompt; not blank.
	Text string
	// Scope says who owns the memory.
	Scope string
	// Score is the retriever's similarity, 0 to 1, higher is better.
	Score float64
	// SourceRank is the retriever's rank, 1 is best.
	SourceRank uint32
	// Provenance says where the memory came from.
	Provenance Provenance
	// ConflictKey names the slot of the fact that the memory states; empty is no slot.
	ConflictKey string
	// Authority says on whose word the memory stands.
	Authority Authority
}

// Provenance says where a memory came from.
type Provenance struct {
	SourceID   string
	SourceType string
	// Title may be empty.
	Title string
	// CapturedAt may be unset, which is older than any time.
	CapturedAt Instant
}

// Instant is a point in time, or unset. It is not a time.Time, whose zero value is an instant that
// a memory may have been captured at.
type Instant struct {
	// Seconds since 1970-01-01T00:00:00Z; the years 0001 to 9999.
	Seconds int64
	// Nanos is 0 to 999,999,999.
	Nanos int32
	// Set tells the instant from no instant.
	Set bool
}

// InstantOf returns the instant of t.
func InstantOf(t time.Time) Instant {
	return Instant{Seconds: t.Unix(), Nanos: int32(t.Nanosecond()), Set: true}
}

// Compare orders instants by time; an unset one is before all others.
func (i Instant) Compare(j Instant) int {
	switch {
	case i.Set != j.Set:
		if j.Set {
			return -1
		}
		return +1
	case i.Seconds != j.Seconds:
		return cmp.Compare(i.Seconds, j.Seconds)
	default:
		return cmp.Compare(i.Nanos, j.Nanos)
	}
}

// utc returns the instant as a time.Time in UTC.
func (i Instant) utc() time.Time { return time.Unix(i.Seconds, int64(i.Nanos)).UTC() }

// Authority says on whose word a memory stands; a higher one goes before any score.
type Authority uint8

// The authorities, lowest first.
const (
	UserDefault Authority = iota
	WorkspaceOverride
	CurrentTurn
)

var authorityNames = [...]string{
	UserDefault:       "user_default",
	WorkspaceOverride: "workspace_override",
	CurrentTurn:       "current_turn",
}

// String returns the authority's name as the context shows it, such as "current_turn".
func (a Authority) String() string { return authorityNames[a] }
