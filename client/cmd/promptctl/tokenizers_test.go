package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTokenizers(t *testing.T) {
	got := promptctl(t, "", "tokenizers")
	lines := strings.Split(got.stdout, "\n")
	if got.status != 0 || strings.Join(strings.Fields(lines[0]), " ") != "name exact version source" {
		t.Fatalf("got %+v", got)
	}
	rows := make(map[string]string)
	for _, line := range lines[1:] {
		name, rest, _ := strings.Cut(line, " ")
		rows[name] = strings.TrimSpace(rest)
	}
	for name, want := range map[string][2]string{
		"estimate":   {"no ", " built in"},
		"o200k_base": {"yes ", " tiktoken o200k_base, embedded"},
		"gpt-4":      {"yes ", " tiktoken cl100k_base, embedded"},
	} {
		if row := rows[name]; !strings.HasPrefix(row, want[0]) || !strings.HasSuffix(row, want[1]) {
			t.Errorf("%s: %q, want %q", name, row, want)
		}
	}

	got = promptctl(t, "", "tokenizers", "-o", "json")
	var answer struct {
		Tokenizers []struct {
			Name, Version, Source string
			Exact                 bool
		}
		UnicodeVersion string
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.status != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if len(answer.Tokenizers) != len(rows)-1 || answer.UnicodeVersion == "" { // the last line is empty
		t.Errorf("%d tokenizers in JSON, %d in the table; Unicode %q", len(answer.Tokenizers), len(rows)-1, answer.UnicodeVersion)
	}
}

func TestTokenizersOfNobody(t *testing.T) {
	got := promptctl(t, "", "tokenizers", "--server", silent(t))
	if got.status != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "promptctl: UNAVAILABLE: ") {
		t.Errorf("got %+v", got)
	}
}
