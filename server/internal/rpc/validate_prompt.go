package rpc

import (
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/prompt"
)

// planPrompt adds the faults of a request: depth first, fields by number.
func (f *faults) planPrompt(at *path, m *pb.PlanPromptRequest) {
	names := make(map[string]struct{}, len(m.GetSegments())+1)
	if m.GetMemory() != nil {
		names[prompt.RecalledMemory.Defaults().Name] = struct{}{}
	}

	f.check(at.field("query_id"), optionalIdentifier(m.GetQueryId()))
	segments := at.field("segments")
	for i, s := range m.GetSegments() {
		f.segment(segments.at(i), s, names)
	}
	if m.GetMemory() != nil {
		f.selectMemory(at.field("memory"), m.GetMemory())
	}
	f.budget(at.field("max_chars"), m.GetMaxChars())
	f.budget(at.field("max_tokens"), m.GetMaxTokens())
	if len(m.GetGrant()) > 0 && (len(m.GetSegments()) > 0 || m.GetMemory() != nil ||
		m.GetMaxChars() != nil || m.GetMaxTokens() != nil || m.GetTokenizer() != "") {
		f.check(at.field("grant"), grantAlone)
	}
}

// segment adds the faults of a segment, and its name to those that are taken.
func (f *faults) segment(at *path, s *pb.PromptSegment, names map[string]struct{}) {
	kind, defined := segmentKind(s.GetKind())
	f.segmentName(at.field("name"), s.GetName(), kind, defined, names)
	switch {
	case !defined:
		f.check(at.field("kind"), undefinedEnum)
	case kind == prompt.RecalledMemory:
		f.check(at.field("kind"), kindFromMemory)
	}
	if len(s.GetText()) > maxTextBytes {
		f.check(at.field("text"), textTooLong)
	}
	if defined && kind.Defaults().Required && s.Required != nil && !s.GetRequired() {
		f.check(at.field("required"), requiredByKind)
	}
	f.check(at.field("provenance"), optionalIdentifier(s.GetProvenance()))
}

// segmentName adds the fault of a name. An empty one takes the default of its kind before names are
// compared; beside an undefined kind there is none to take, and the kind is the only fault.
func (f *faults) segmentName(at *path, name string, kind prompt.Kind, defined bool, names map[string]struct{}) {
	if name == "" {
		if !defined {
			return
		}
		if name = kind.Defaults().Name; name == "" {
			f.check(at, nameByKind)
			return
		}
	}
	rule := optionalIdentifier(name)
	if _, taken := names[name]; taken && rule == "" {
		rule = nameOccurredBefore
	}
	names[name] = struct{}{}
	f.check(at, rule)
}
