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

// tooMany walks the encoding of a request of m's type and returns the path of the first list or map
// in it, depth first, that holds more elements than it may; empty if none does. It decodes nothing
// and stops where the bytes are no message, which decoding will report.
func tooMany(b []byte, m proto.Message) string {
	switch m.(type) {
	case *pb.SelectMemoryRequest:
		var c selectCounts
		c.walk(b)
		return c.first(nil)
	case *pb.PlanPromptRequest:
		segments := 0
		var c selectCounts
		eachMessage(b, func(field protowire.Number, value []byte) {
			switch field {
			case planSegments:
				segments++
			case planMemory:
				c.walk(value) // parts of one message merge, so their elements add up
			}
		})
		if segments > maxSegments {
			return "segments"
		}
		return c.first(&path{name: "memory"})
	default:
		return ""
	}
}

// selectCounts counts the elements of one SelectMemoryRequest.
type selectCounts struct {
	hits, conflictKeys, authorities, candidates int
	termsOf                                     int // the first hit with too many matched terms, from 1
}

func (c *selectCounts) walk(b []byte) {
	eachMessage(b, func(field protowire.Number, value []byte) {
		switch field {
		case selectRecall:
			eachMessage(value, c.countHit)
		case selectConflictKeys:
			c.conflictKeys++
		case selectAuthorities:
			c.authorities++
		case selectCandidates:
			c.candidates++
		}
	})
}

// countHit counts a hit, if the field of the recall is one, and its matched terms.
func (c *selectCounts) countHit(field protowire.Number, hit []byte) {
	if field != recallHits {
		return
	}
	c.hits++
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
	if terms > maxMatchedTerms && c.termsOf == 0 {
		c.termsOf = c.hits
	}
}

// first returns the path of the first list or map that is too long, in a request at that path.
func (c *selectCounts) first(at *path) string {
	switch {
	case c.termsOf > 0:
		hit := at.field("recall").field("hits").at(c.termsOf - 1)
		return hit.field("score_breakdown").field("matched_terms").String()
	case c.conflictKeys > maxMapEntries:
		return at.field("conflict_keys").String()
	case c.authorities > maxMapEntries:
		return at.field("authority_by_memory_id").String()
	case c.hits+c.candidates > maxMemories:
		return at.field("candidates").String()
	default:
		return ""
	}
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
