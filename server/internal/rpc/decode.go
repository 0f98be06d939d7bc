package rpc

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// This file decodes memories, of which a request can hold thousands, in less than half the time that the
// library takes: their texts are parts of one string, and their messages parts of one list of each
// kind. It knows them as encoders write them. A memory in any other form, such as one with a field
// that is unknown, and whatever else a request holds, is decoded by the library.

// unmarshal decodes b, which holds e, into m. It does what proto.Unmarshal does, but for matched
// terms, which nothing reads: they are checked and left out. m keeps nothing of b.
func unmarshal(b []byte, m proto.Message, e *elements) error {
	d := decoder{
		provenances: slab[pb.Provenance]{size: e.hits + e.candidates},
		times:       slab[timestamppb.Timestamp]{size: e.hits + e.candidates},
		scores:      slab[float64]{size: e.hits + e.candidates},
		hits:        slab[pb.RecallHit]{size: e.hits},
		breakdowns:  slab[pb.ScoreBreakdown]{size: e.hits},
		candidates:  slab[pb.MemoryContextCandidate]{size: e.candidates},
	}
	switch m := m.(type) {
	case *pb.SelectMemoryRequest:
		return d.selectMemory(b, string(b), m)
	case *pb.PlanPromptRequest:
		return d.planPrompt(b, string(b), m)
	default:
		return proto.Unmarshal(b, m)
	}
}

// merge decodes b into what m already holds.
var merge = proto.UnmarshalOptions{Merge: true}

// decoder holds the messages that it gives out.
type decoder struct {
	provenances slab[pb.Provenance]
	times       slab[timestamppb.Timestamp]
	scores      slab[float64]
	hits        slab[pb.RecallHit]
	breakdowns  slab[pb.ScoreBreakdown]
	candidates  slab[pb.MemoryContextCandidate]
}

// slab gives out elements of lists that are allocated as a whole.
type slab[T any] struct {
	free []T
	size int // of a list
}

func (s *slab[T]) next() *T {
	if len(s.free) == 0 {
		s.free = make([]T, max(1, s.size))
	}
	t := &s.free[0]
	s.free = s.free[1:]
	return t
}

// Every decoding function gets its message twice: as bytes, and as a string, of which it keeps parts.

func (d *decoder) planPrompt(b []byte, s string, m *pb.PlanPromptRequest) error {
	return decodeFields(b, s, m, func(field protowire.Number, b []byte, s string) (bool, error) {
		if field != planMemory {
			return false, nil
		}
		if m.Memory == nil {
			m.Memory = new(pb.SelectMemoryRequest)
		}
		return true, d.selectMemory(b, s, m.Memory)
	})
}

func (d *decoder) selectMemory(b []byte, s string, m *pb.SelectMemoryRequest) error {
	if n := d.candidates.size; m.Candidates == nil && n > 0 {
		m.Candidates = make([]*pb.MemoryContextCandidate, 0, n)
	}
	return decodeFields(b, s, m, func(field protowire.Number, b []byte, s string) (bool, error) {
		switch field {
		case selectCandidates:
			c := d.candidates.next()
			m.Candidates = append(m.Candidates, c)
			if d.candidate(s, c) {
				return true, nil
			}
			return true, proto.Unmarshal(b, c) // which resets it
		case selectRecall:
			if m.Recall == nil {
				m.Recall = new(pb.RecallResult)
			}
			return true, d.recall(b, s, m.Recall)
		default:
			return false, nil
		}
	})
}

func (d *decoder) recall(b []byte, s string, m *pb.RecallResult) error {
	if n := d.hits.size; m.Hits == nil && n > 0 {
		m.Hits = make([]*pb.RecallHit, 0, n)
	}
	return decodeFields(b, s, m, func(field protowire.Number, b []byte, s string) (bool, error) {
		if field != recallHits {
			return false, nil
		}
		h := d.hits.next()
		m.Hits = append(m.Hits, h)
		if d.hit(s, h) {
			return true, nil
		}
		err := proto.Unmarshal(b, h)
		if h.ScoreBreakdown != nil {
			h.ScoreBreakdown.MatchedTerms = nil
		}
		return true, err
	})
}

// decodeFields hands each length-delimited field of a message to known, and decodes into m those that
// it does not know.
func decodeFields(
	b []byte, s string, m proto.Message, known func(field protowire.Number, b []byte, s string) (bool, error),
) error {
	others := 0 // where those begin that are not decoded yet
	for i := 0; i < len(b); {
		start := i
		field, wireType, n := protowire.ConsumeTag(b[i:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		i += n
		if wireType != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, wireType, b[i:]); n < 0 {
				return protowire.ParseError(n)
			}
			i += n
			continue
		}
		value, n := protowire.ConsumeBytes(b[i:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		i += n
		isKnown, err := known(field, value, s[i-len(value):i])
		if isKnown {
			if err == nil && others < start {
				err = merge.Unmarshal(b[others:start], m)
			}
			others = i
		}
		if err != nil {
			return err
		}
	}
	return merge.Unmarshal(b[others:], m)
}
