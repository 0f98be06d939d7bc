package rpc

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// The most elements that a request may hold.
const (
	maxSegments     = 256
	maxMemories     = 10_000 // hits and candidates together
	maxMapEntries   = 10_000
	maxMatchedTerms = 1_000
)

// Field numbers of the messages that are counted, as their .proto files give them.
const (
	planSegments = 2
	planMemory   = 3

	selectRecall       = 3
	selectConflictKeys = 4
	selectAuthorities  = 5
	selectCandidates   = 6

	recallHits = 2

	hitScoreBreakdown = 6

	scoreMatchedTerms = 6
)

// elements is how many elements the encoding of a request holds, by list and map.
type elements struct {
	plan                                        bool // of a PlanPromptRequest
	segments                                    int
	hits, conflictKeys, authorities, candidates int
	terms                                       int // matched terms of all hits
	termsOf                                     int // the first hit with too many matched terms, from 1
}

// count walks the encoding of a request of m's type. It decodes nothing and stops where the bytes
// are no message, which decoding will report.
func count(b []byte, m proto.Message) elements {
	var e elements
	switch m.(type) {
	case *pb.SelectMemoryRequest:
		e.countSelect(b)
	case *pb.PlanPromptRequest:
		e.plan = true
		eachMessage(b, func(field protowire.Number, value []byte) {
			switch field {
			case planSegments:
				e.segments++
			case planMemory:
				e.countSelect(value) // parts of one message merge, so their elements add up
			}
		})
	}
	return e
}

func (e *elements) countSelect(b []byte) {
	eachMessage(b, func(field protowire.Number, value []byte) {
		switch field {
		case selectRecall:
			eachMessage(value, e.countHit)
		case selectConflictKeys:
			e.conflictKeys++
		case selectAuthorities:
			e.authorities++
		case selectCandidates:
			e.candidates++
		}
	})
}

// countHit counts a hit, if the field of the recall is one, and its matched terms.
func (e *elements) countHit(field protowire.Number, hit []byte) {
	if field != recallHits {
		return
	}
	e.hits++
	terms := 0
	eachMessage(hit, func(field protowire.Number, score []byte) {
		if field != hitScoreBreakdown {
			return
		}
		eachMessage(score, func(field protowire.Number, _ []byte) {
			if field == scoreMatchedTerms {
				terms++
			}
		})
	})
	e.terms += terms
	if terms > maxMatchedTerms && e.termsOf == 0 {
		e.termsOf = e.hits
	}
}

// tooMany returns the path of the first list or map, depth first, that holds more elements than it
// may; empty if none does.
func (e *elements) tooMany() string {
	var at *path // of the SelectMemoryRequest
	if e.plan {
		at = &path{name: "memory"}
	}
	switch {
	case e.segments > maxSegments:
		return "segments"
	case e.termsOf > 0:
		hit := at.field("recall").field("hits").at(e.termsOf - 1)
		return hit.field("score_breakdown").field("matched_terms").String()
	case e.conflictKeys > maxMapEntries:
		return at.field("conflict_keys").String()
	case e.authorities > maxMapEntries:
		return at.field("authority_by_memory_id").String()
	case e.hits+e.candidates > maxMemories:
		return at.field("candidates").String()
	default:
		return ""
	}
}

// What an element takes in memory beside its texts, in bytes and rounded up: decoded, converted,
// and as a decision in the answer.
const (
	bytesOfMemory   = 768
	bytesOfSegment  = 1 << 10
	bytesOfMapEntry = 256
	bytesOfTerm     = 32
)

// bytes estimates how much memory answering a request of that encoded size takes. Its texts are
// there twice: as received, and decoded.
func (e *elements) bytes(encoded int) int64 {
	return 2*int64(encoded) +
		bytesOfMemory*int64(e.hits+e.candidates) +
		bytesOfSegment*int64(e.segments) +
		bytesOfMapEntry*int64(e.conflictKeys+e.authorities) +
		bytesOfTerm*int64(e.terms)
}

// eachMessage calls f for each field of an encoded message that is length-delimited, as messages and
// strings are.
func eachMessage(b []byte, f func(field protowire.Number, value []byte)) {
	for len(b) > 0 {
		field, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if wireType != protowire.BytesType {
			n = protowire.ConsumeFieldValue(field, wireType, b)
			if n < 0 {
				return
			}
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return
		}
		f(field, value)
		b = b[n:]
	}
}
