package rpc

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// The functions below decode one message each, and return false for any form but the plain one:
// fields that the message has, in one part, in tags of one byte.

// The wire types within a tag of one byte.
const (
	varintField  = byte(protowire.VarintType)
	fixed64Field = byte(protowire.Fixed64Type)
	bytesField   = byte(protowire.BytesType)
)

func (d *decoder) candidate(s string, m *pb.MemoryContextCandidate) (ok bool) {
	for ok = true; ok && s != ""; {
		tag := s[0]
		s = s[1:]
		switch tag {
		case 1<<3 | bytesField:
			m.MemoryId, s, ok = takeText(s)
		case 2<<3 | bytesField:
			m.Text, s, ok = takeText(s)
		case 3<<3 | bytesField:
			m.UserScope, s, ok = takeText(s)
		case 4<<3 | fixed64Field:
			m.Score = d.scores.next()
			*m.Score, s, ok = takeDouble(s)
		case 5<<3 | varintField:
			m.SourceRank, s, ok = take32[uint32](s)
		case 6<<3 | bytesField:
			m.Provenance, s, ok = d.provenance(s, m.Provenance)
		case 7<<3 | bytesField:
			m.ConflictKey, s, ok = takeText(s)
		case 8<<3 | varintField:
			m.Authority, s, ok = take32[pb.Authority](s)
		default:
			return false
		}
	}
	return ok
}

func (d *decoder) hit(s string, m *pb.RecallHit) (ok bool) {
	for ok = true; ok && s != ""; {
		tag := s[0]
		s = s[1:]
		switch tag {
		case 1<<3 | bytesField:
			m.MemoryId, s, ok = takeText(s)
		case 2<<3 | varintField:
			m.Rank, s, ok = take32[uint32](s)
		case 3<<3 | bytesField:
			m.Snippet, s, ok = takeText(s)
		case 4<<3 | bytesField:
			m.UserScope, s, ok = takeText(s)
		case 5<<3 | bytesField:
			m.Provenance, s, ok = d.provenance(s, m.Provenance)
		case 6<<3 | bytesField:
			m.ScoreBreakdown, s, ok = d.breakdown(s, m.ScoreBreakdown)
		default:
			return false
		}
	}
	return ok
}

func (d *decoder) breakdown(in string, part *pb.ScoreBreakdown) (m *pb.ScoreBreakdown, rest string, ok bool) {
	s, rest, ok := takeBytes(in)
	if !ok || part != nil {
		return nil, rest, false
	}
	m = d.breakdowns.next()
	for ok && s != "" {
		tag := s[0]
		s = s[1:]
		switch tag {
		case 1<<3 | fixed64Field:
			m.Total = d.scores.next()
			*m.Total, s, ok = takeDouble(s)
		case 2<<3 | fixed64Field:
			m.LexicalCoverage, s, ok = takeDouble(s)
		case 3<<3 | fixed64Field:
			m.Recency, s, ok = takeDouble(s)
		case 4<<3 | fixed64Field:
			m.LexicalContribution, s, ok = takeDouble(s)
		case 5<<3 | fixed64Field:
			m.RecencyContribution, s, ok = takeDouble(s)
		case 6<<3 | bytesField:
			_, s, ok = takeText(s)
		case 7<<3 | varintField:
			m.QueryTermCount, s, ok = take32[uint32](s)
		default:
			return nil, rest, false
		}
	}
	return m, rest, ok
}

func (d *decoder) provenance(in string, part *pb.Provenance) (m *pb.Provenance, rest string, ok bool) {
	s, rest, ok := takeBytes(in)
	if !ok || part != nil {
		return nil, rest, false
	}
	m = d.provenances.next()
	for ok && s != "" {
		tag := s[0]
		s = s[1:]
		switch tag {
		case 1<<3 | bytesField:
			m.SourceId, s, ok = takeText(s)
		case 2<<3 | bytesField:
			m.SourceType, s, ok = takeText(s)
		case 3<<3 | bytesField:
			m.Title, s, ok = takeText(s)
		case 4<<3 | bytesField:
			m.CapturedAt, s, ok = d.time(s, m.CapturedAt)
		default:
			return nil, rest, false
		}
	}
	return m, rest, ok
}

func (d *decoder) time(in string, part *timestamppb.Timestamp) (m *timestamppb.Timestamp, rest string, ok bool) {
	s, rest, ok := takeBytes(in)
	if !ok || part != nil {
		return nil, rest, false
	}
	m = d.times.next()
	for ok && s != "" {
		tag := s[0]
		s = s[1:]
		switch tag {
		case 1<<3 | varintField:
			var seconds uint64
			seconds, s, ok = takeVarint(s)
			m.Seconds = int64(seconds)
		case 2<<3 | varintField:
			m.Nanos, s, ok = take32[int32](s)
		default:
			return nil, rest, false
		}
	}
	return m, rest, ok
}

// takeVarint returns the varint that s begins with, if it has at most nine bytes.
func takeVarint(s string) (v uint64, rest string, ok bool) {
	for i := range min(len(s), 9) {
		v |= uint64(s[i]&0x7F) << (7 * i)
		if s[i] < 0x80 {
			return v, s[i+1:], true
		}
	}
	return 0, s, false
}

// take32 is takeVarint for 32 bits; higher bits are cut off, as the library does.
func take32[T uint32 | int32 | pb.Authority](s string) (T, string, bool) {
	v, rest, ok := takeVarint(s)
	return T(v), rest, ok
}

func takeDouble(s string) (v float64, rest string, ok bool) {
	if len(s) < 8 {
		return 0, s, false
	}
	bits := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return math.Float64frombits(bits), s[8:], true
}

// takeBytes returns the length-delimited value that s begins with.
func takeBytes(s string) (value, rest string, ok bool) {
	n, s, ok := takeVarint(s)
	if !ok || n > uint64(len(s)) {
		return "", s, false
	}
	return s[:n], s[n:], true
}

// takeText is takeBytes for valid UTF-8.
func takeText(s string) (text, rest string, ok bool) {
	text, rest, ok = takeBytes(s)
	return text, rest, ok && utf8.ValidString(text)
}
