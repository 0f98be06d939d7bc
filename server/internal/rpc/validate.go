package rpc

import (
	"unicode"

	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/text"
)

// The rules below are those that the .proto files carry for protovalidate, in plain Go, as
// protovalidate costs as much as decoding; and the rules across lists, which it cannot express. How
// many elements a request may hold has been checked before it was decoded.

const (
	maxTextBytes       = 262_144
	maxIdentifierBytes = 256
	maxTitleBytes      = 1_024
)

// The rules, as a violation's description gives them.
const (
	tooManyElements     = "holds more elements than it may"
	mustBeSet           = "must be set"
	mustNotBeEmpty      = "must not be empty"
	mustNotBeBlank      = "must not be empty or only white space"
	identifierTooLong   = "must be at most 256 bytes"
	titleTooLong        = "must be at most 1024 bytes"
	textTooLong         = "must be at most 262144 bytes"
	noControls          = "must not hold a control character"
	notOnlySpace        = "must not be only white space"
	scoreInRange        = "must be a number from 0 to 1"
	rankFromOne         = "must be 1 or more"
	undefinedEnum       = "must be a value that its enum defines"
	timeInRange         = "must be a time of the years 0001 to 9999"
	unlimitedTrue       = "must be true where it is set"
	kindFromMemory      = "recalled memory comes only from the field memory"
	requiredByKind      = "a segment of this kind cannot be optional"
	nameByKind          = "a segment of this kind must be named"
	scopeOfHits         = "may be empty only if every hit has a scope"
	keysAreIdentifiers  = "every key must be an identifier of at most 256 bytes"
	idOccurredBefore    = "this memory id occurred before" // across lists
	nameOccurredBefore  = "this segment name is taken"     // across lists
	grantAlone          = "must stand alone but for query_id"
	grantOfAll          = "must hold the whole request, not its memory"
	annotationWithoutID = "no hit of recall has this memory id" // across lists
)

// validate returns the faults of a request at that path.
func validate(at *path, m proto.Message) *faults {
	f := new(faults)
	switch m := m.(type) {
	case *pb.SelectMemoryRequest:
		f.selectMemory(at, m)
	case *pb.PlanPromptRequest:
		f.planPrompt(at, m)
	}
	return f
}

// identifier returns the rule that s breaks as a required identifier, or "".
func identifier(s string) string {
	if s == "" {
		return mustNotBeEmpty
	}
	return identifierUpTo(s, maxIdentifierBytes, identifierTooLong)
}

// optionalIdentifier returns the rule that s breaks as an identifier that may be empty, or "".
func optionalIdentifier(s string) string {
	if s == "" {
		return ""
	}
	return identifierUpTo(s, maxIdentifierBytes, identifierTooLong)
}

// identifierUpTo returns the rule that s, which is not empty, breaks as an identifier.
func identifierUpTo(s string, most int, tooLong string) string {
	if len(s) > most {
		return tooLong
	}
	if plain(s) {
		return ""
	}
	blank := true
	for _, r := range s {
		switch {
		case r < ' ', 0x7F <= r && r <= 0x9F, r == '\u2028', r == '\u2029', r == '\uFFFE', r == '\uFFFF':
			return noControls
		case blank && !unicode.IsSpace(r):
			blank = false
		}
	}
	if blank {
		return notOnlySpace
	}
	return ""
}

// plain reports whether s begins with a printable character of ASCII that is no space, and holds
// nothing but printable ASCII, as most identifiers do.
func plain(s string) bool {
	for i := range len(s) {
		if s[i]-' ' > '~'-' ' {
			return false
		}
	}
	return s[0] != ' '
}

// memoryText returns the rule that s breaks as a memory's text, or "".
func memoryText(s string) string {
	switch {
	case len(s) > maxTextBytes:
		return textTooLong
	case text.Blank(s):
		return mustNotBeBlank
	default:
		return ""
	}
}

// score returns the rule that a score breaks, or "".
func score(s float64) string {
	if s >= 0 && s <= 1 { // false for NaN
		return ""
	}
	return scoreInRange
}

// requiredScore is score for one that must be set.
func requiredScore(s *float64) string {
	if s == nil {
		return mustBeSet
	}
	return score(*s)
}

func rank(r uint32) string {
	if r == 0 {
		return rankFromOne
	}
	return ""
}

// budget adds the faults of a budget that may be unset.
func (f *faults) budget(at *path, b *pb.Budget) {
	if bound, ok := b.GetBound().(*pb.Budget_Unlimited); ok && !bound.Unlimited {
		f.check(at.field("unlimited"), unlimitedTrue)
	}
}
