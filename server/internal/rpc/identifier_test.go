package rpc

import (
	"strings"
	"testing"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// TestIdentifiers checks hand-made identifiers against the contract and against protovalidate.
func TestIdentifiers(t *testing.T) {
	for _, test := range []struct {
		name, value string
		valid       bool
	}{
		{"one byte", "a", true},
		{"empty", "", false},
		{"256 bytes", strings.Repeat("x", 256), true},
		{"257 bytes", strings.Repeat("x", 257), false},
		{"128 characters of two bytes", strings.Repeat("é", 128), true},
		{"129 characters of two bytes", strings.Repeat("é", 129), false},
		{"64 characters of four bytes", strings.Repeat("😀", 64), true},
		{"257 bytes, the last character of four", strings.Repeat("x", 253) + "😀", false},
		{"257 spaces", strings.Repeat(" ", 257), false},
		{"spaces around", "  a ", true},
		{"ideographic spaces alone", "\u3000\u3000", false},
		{"a no-break space and a letter", "\u00a0a", true},
		{"first of C0", "a\x00", false},
		{"tab", "a\tb", false},
		{"line feed", "a\n", false},
		{"a control that some call white space", "a\x1c", false},
		{"last of C0", "\x1fa", false},
		{"DEL", "a\x7f", false},
		{"between ASCII and DEL", "~", true},
		{"first of C1", "a\u0080", false},
		{"next line", "a\u0085", false},
		{"last of C1", "a\u009f", false},
		{"after C1, but white space alone", "\u00a0", false},
		{"after C1", "\u00a1", true},
		{"before the line separator, of no width", "\u2027\u200b", true},
		{"line separator", "a\u2028", false},
		{"paragraph separator", "a\u2029b", false},
		{"after the paragraph separator", "\u202a", true},
		{"replacement character", "\ufffd", true},
		{"U+FFFE", "a\ufffe", false},
		{"U+FFFF", "\uffffa", false},
		{"a non-character of another plane", "\U0001ffff", true},
		{"last code point", "\U0010ffff", true},
		{"zero width space alone", "\u200b", true},
		{"Mongolian vowel separator alone, once white space", "\u180e", true},
		{"Ogham space alone", "\u1680", false},
	} {
		if got := identifier(test.value) == ""; got != test.valid {
			t.Errorf("%s: valid = %t, want %t", test.name, got, test.valid)
		}
		if want := test.value == "" || test.valid; (optionalIdentifier(test.value) == "") != want {
			t.Errorf("%s, where it may be empty: valid = %t, want %t", test.name, !want, want)
		}
		agree(t, selectFrom(&pb.Provenance{SourceId: test.value, SourceType: "t", Title: test.value}))
	}
}

// TestIdentifiersOfOneCharacter compares with protovalidate alone, on all that its patterns name.
func TestIdentifiersOfOneCharacter(t *testing.T) {
	for first := range rune(0x3100) {
		for _, r := range []rune{first, 0xFFFF - first} {
			if s := string(r); s != "\ufffd" { // what is no character becomes U+FFFD
				agree(t, &pb.PlanPromptRequest{QueryId: s})
			}
		}
	}
}

// selectFrom returns a valid request but for the provenance.
func selectFrom(p *pb.Provenance) *pb.SelectMemoryRequest {
	return &pb.SelectMemoryRequest{UserScope: "u", Candidates: []*pb.MemoryContextCandidate{
		{MemoryId: "m", Text: "x", UserScope: "u", Score: new(1.0), SourceRank: 1, Provenance: p},
	}}
}
