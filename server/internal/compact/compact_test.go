package compact_test

import (
	"encoding/base64"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/internal/compact"
)

func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		part string
		want string
		ok   bool
	}{
		{"", "", true},
		{"YQ", "a", true},
		{"YWI", "ab", true},
		{"YWJj", "abc", true},
		{"-_8", "\xfb\xff", true},
		{"YR", "", false}, // spare bits
		{"YWJ", "", false},
		{"YQ==", "", false},
		{"YQ=", "", false},
		{"Y", "", false},
		{"+/8", "", false},
		{"YW\nJj", "", false},
		{"YWJj\n", "", false},
		{"\r\nYWJj", "", false},
		{" YWJj", "", false},
		{"YW.Jj", "", false},
		{"Y\u00fcJj", "", false},
	} {
		got, ok := compact.Bytes([]byte(tt.part))
		if ok != tt.ok || ok && string(got) != tt.want {
			t.Errorf("%q: %q, %t", tt.part, got, ok)
		}
	}
}

func TestBytesHaveOneSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[A-Za-z0-9_\-=+/\n\r]{0,12}`).Draw(t, "part")
		if data, ok := compact.Bytes([]byte(part)); ok && base64.RawURLEncoding.EncodeToString(data) != part {
			t.Fatalf("%q is another spelling of %q", part, data)
		}
	})
}

func TestObject(t *testing.T) {
	for _, tt := range []struct {
		json string
		ok   bool
	}{
		{`{}`, true},
		{`{"a":1,"A":2}`, true},
		{`{"a":1,"a":1}`, false},
		{`null`, false},
		{`[]`, false},
		{`"a"`, false},
		{``, false},
		{`{"a":1} `, true},
		{`{"a":1}{}`, false},
		{"{\"a\":\"\xff\"}", false},
	} {
		var object map[string]any
		if ok := compact.Object(base64.RawURLEncoding.AppendEncode(nil, []byte(tt.json)), &object); ok != tt.ok {
			t.Errorf("%s: %t", tt.json, ok)
		}
	}
}
