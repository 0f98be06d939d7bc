package policy

import (
	"strings"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// AuthorityName returns the name of an authority in a file, such as current_turn.
func AuthorityName(a pb.Authority) string {
	return strings.ToLower(strings.TrimPrefix(a.String(), "AUTHORITY_"))
}

// KindName returns the name of a segment kind in a file, such as base_instructions.
func KindName(k pb.SegmentKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "SEGMENT_KIND_"))
}

// authorityNames and kindNames are what a file may name, in the order of the enum. Recalled memory is
// not among the kinds: no segment that is sent is of that kind.
var authorityNames, kindNames []string

func init() {
	for number := int32(1); pb.Authority_name[number] != ""; number++ {
		authorityNames = append(authorityNames, AuthorityName(pb.Authority(number)))
	}
	for number := int32(1); pb.SegmentKind_name[number] != ""; number++ {
		if kind := pb.SegmentKind(number); kind != pb.SegmentKind_SEGMENT_KIND_RECALLED_MEMORY {
			kindNames = append(kindNames, KindName(kind))
		}
	}
}

// set is a set of the numbers of an enum.
type set uint32

func (s set) has(number int32) bool { return s>>uint32(number)&1 == 1 } // shifted out beyond 31

func (s *set) add(number int32) { *s |= 1 << uint32(number) }

// authorities reads a list of authorities.
func (r *reader) authorities(f field) []pb.Authority {
	var list []pb.Authority
	r.distinct(r.list(f, 0, "authorities"), func(element field) (string, bool) {
		name, ok := r.choice(element, authorityNames...)
		if ok {
			list = append(list, pb.Authority(pb.Authority_value["AUTHORITY_"+strings.ToUpper(name)]))
		}
		return name, ok
	})
	return list
}

// kinds reads a list of segment kinds.
func (r *reader) kinds(f field) []pb.SegmentKind {
	var list []pb.SegmentKind
	r.distinct(r.list(f, 0, "segment kinds"), func(element field) (string, bool) {
		if element.Value == "recalled_memory" {
			r.wrong(element, "recalled_memory comes from the memory alone, and is never required; must be %s", oneOf(kindNames))
			return "", false
		}
		name, ok := r.choice(element, kindNames...)
		if ok {
			list = append(list, pb.SegmentKind(pb.SegmentKind_value["SEGMENT_KIND_"+strings.ToUpper(name)]))
		}
		return name, ok
	})
	return list
}

func setOf[E ~int32](list []E) set {
	var s set
	for _, number := range list {
		s.add(int32(number))
	}
	return s
}
