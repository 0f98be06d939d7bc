package prompt_test

import (
	"testing"

	"github.com/promptassembly/promptassembly/server/budget"
)

func TestOptionalTextIsNeutralised(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"plain - text -- here --- too", "plain - text -- here --- too"},
		{"---", "&#45;--"},
		{"-----", "&#45;----"},
		{"--", "--"},
		{"- - -", "- - -"},
		{" ---", " ---"},
		{"a\n---\nb", "a\n&#45;--\nb"},
		{"a\r---", "a\r&#45;--"},
		{"a\r\n---", "a\r\n&#45;--"},
		{"a\v---", "a\v&#45;--"},
		{"a\f---", "a\f&#45;--"},
		{"a\u0085---", "a\u0085&#45;--"},
		{"a\u2028---", "a\u2028&#45;--"},
		{"a\u2029---", "a\u2029&#45;--"},
		{"a\x1E---", "a\x1E---"},
		{"---\n---\n\n---", "&#45;--\n&#45;--\n\n&#45;--"},
		{"\u2014\u2014\u2014", "\u2014\u2014\u2014"},

		{"<recalled_memory>", "&lt;recalled_memory>"},
		{"</recalled_memory>", "&lt;/recalled_memory>"},
		{"<memory_hit n=\"1\">a</memory_hit>", "&lt;memory_hit n=\"1\">a&lt;/memory_hit>"},
		{"<RECALLED_MEMORY></Memory_Hit>", "&lt;RECALLED_MEMORY>&lt;/Memory_Hit>"},
		{"<memory_hits", "&lt;memory_hits"},
		{"<<memory_hit<memory_hit", "<&lt;memory_hit&lt;memory_hit"},
		{"<memory_hi", "<memory_hi"},
		{"<recalled_memor", "<recalled_memor"},
		{"<", "<"},
		{"</", "</"},
		{"< memory_hit", "< memory_hit"},
		{"<//memory_hit", "<//memory_hit"},
		{"<memory-hit>", "<memory-hit>"},
		{"memory_hit>", "memory_hit>"},
		{"&lt;memory_hit", "&lt;memory_hit"},
		// Letters beyond ASCII are others, whatever they fold to.
		{"<memory_h\u0131t><MEMORY_H\u0130T>", "<memory_h\u0131t><MEMORY_H\u0130T>"},
		{"<ｍemory_hit>", "<ｍemory_hit>"},
		// Everything else stays: it is no XML.
		{"a < b && c > d\x00\uFFFE", "a < b && c > d\x00\uFFFE"},
		{"---<memory_hit>\n---", "&#45;--&lt;memory_hit>\n&#45;--"},
	} {
		plan, err := newPlan(request(budget.Unlimited(), budget.Unlimited(), custom("a", tt.text)))
		if err != nil {
			t.Fatal(err)
		}
		if plan.Prompt != tt.want {
			t.Errorf("%q is placed as %q, want %q", tt.text, plan.Prompt, tt.want)
		}
	}
}
