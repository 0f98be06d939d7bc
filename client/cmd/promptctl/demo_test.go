package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	got := promptctl(t, "", "demo")
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("status %d, stderr %q", got.status, got.stderr)
	}
	if strings.Contains(got.stdout, "\x1b") {
		t.Error("there are colours although the output is no terminal")
	}
	parts := regexp.MustCompile(`(?m)^(Memories|Segments|The prompt|The same .*)$`).Split(got.stdout, -1)
	if len(parts) != 7 {
		t.Fatalf("%d parts, want the introduction and six more:\n%s", len(parts), got.stdout)
	}
	intro, memories, segments, prompt, forged, tight, refused := parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]

	for _, table := range []string{intro, memories, segments, tight} {
		checkTable(t, table)
	}
	checkRows(t, memories, map[string]string{
		"go-this-time": `^1 .* current_turn .* selected$`,
		"typescript":   `^- .* workspace_override .* authority_loser$`,
		"python-usual": `^- .* user_default .* authority_loser$`,
		"omar-rust":    `^- .* 0\.9900 .* scope_mismatch$`,
		"report-0900":  `^\d .* selected$`,
		"report-0830":  `^- .* conflict_loser$`,
		"tests-first":  `^\d .* selected$`,
		"tests-again":  `^- .* duplicate_content$`,
		"日期格式":         `^\d .* selected$`,
		"hiking":       `^- .* low_confidence$`,
	})
	checkRows(t, segments, map[string]string{
		"base": `required$`, "identity": `fits_budget$`, "memory": `fits_budget$`, "project": `fits_budget$`,
		"tools": `required$`, "expert": `empty_content$`, "skills": `fits_budget$`, "connectors": `fits_budget$`,
		"region": `fits_budget$`, "mode": `required$`,
	})
	// The memory has no room; the connectors are worth less and smaller, and enter.
	checkRows(t, tight, map[string]string{
		"base": `^1 .* required$`, "tools": `required$`, "mode": `required$`,
		"memory": `^- .* char_budget_exceeded$`, "connectors": `^\d .* fits_budget$`, "region": `^- .* char_budget_exceeded$`,
	})
	for _, table := range []string{memories, segments, tight} {
		if !regexp.MustCompile(`(?m)^chars \d+ of \d+, tokens \d+`).MatchString(table) {
			t.Errorf("no budgets in:\n%s", table)
		}
	}

	for _, want := range []string{"Please use Go this time.", "报告里的日期写成", "\n---\n", "</recalled_memory>", "Working mode: craft."} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, prompt)
		}
	}
	for _, never := range []string{"Rust", "TypeScript", "Python", "hiking"} {
		if strings.Contains(prompt, never) {
			t.Errorf("%q is in the prompt", never)
		}
	}
	if want := "\nPERMISSION_DENIED (AUTHORITY_NOT_PERMITTED): "; !strings.HasPrefix(forged, want) ||
		!strings.Contains(forged, "\n  identity: spiffe://promptassembly.test/agent\n  path: memory.authority_by_memory_id[\"go-this-time\"]\n") {
		t.Errorf("the forgery is answered with\n%s", forged)
	}
	if want := "\nFAILED_PRECONDITION (REQUIRED_SEGMENTS_EXCEED_BUDGET): "; !strings.HasPrefix(refused, want) ||
		!strings.Contains(refused, "\n  segments: base,tools,mode\n") {
		t.Errorf("the refusal is\n%s", refused)
	}
}

// checkRows looks up rows by their second column and matches each.
func checkRows(t *testing.T, table string, want map[string]string) {
	t.Helper()
	rows := map[string]string{}
	for line := range strings.SplitSeq(table, "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && !strings.HasPrefix(line, " ") {
			rows[fields[1]] = line
		}
	}
	for name, pattern := range want {
		if !regexp.MustCompile(pattern).MatchString(rows[name]) {
			t.Errorf("the row of %s is %q, want %s", name, rows[name], pattern)
		}
	}
}

func TestDemoInColour(t *testing.T) {
	got := promptctl(t, "", "demo", "--color", "always")
	for name, escape := range map[string]string{
		"1 go-this-time": "\x1b[32m", "- hiking": "\x1b[31m", "- expert": "\x1b[2m", "- region": "\x1b[33m",
	} {
		if !strings.Contains(got.stdout, "\n"+escape+name) {
			t.Errorf("%q does not follow %q", name, escape)
		}
	}
}

func TestDemoWithoutServer(t *testing.T) {
	got := promptctl(t, "", "demo", "--server", silent(t))
	if got.status != 1 || !strings.HasPrefix(got.stderr, "promptctl: UNAVAILABLE: ") {
		t.Errorf("got %+v", got)
	}
}
