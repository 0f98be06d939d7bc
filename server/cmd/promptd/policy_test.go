package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server/internal/policy"
)

func TestPolicy(t *testing.T) {
	example := filepath.Join("..", "..", "internal", "policy", "testdata", "example.yaml")
	cases := filepath.Join("..", "..", "internal", "policy", "testdata", "cases.yaml")
	wrong := writeFile(t, "version: 1\ncallers: []\n\"\\e[31m\": 1\n")
	nothing := writeFile(t, "")
	small := writeFile(t, "version: 1\ncallers: [{name: c, identities: [{source: mtls, trust_domain: d, name: n}]}]\n")
	failing := writeFile(t, `cases:
- {name: permitted, identity: 'mtls:d n', expect: ok}
- {name: forged, identity: 'mtls:d n', required: [custom], expect: ok}
- {name: nobody, identity: 'mtls:d m', scope: s, expect: ok}
- {name: allowed by mistake, identity: 'mtls:d n', expect: SCOPE_NOT_PERMITTED}
`)
	noCase := writeFile(t, "cases: []\n")

	for _, test := range []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string // stderr: what is in it; empty: it is
	}{
		{"check", []string{"check", example}, exitDone, example + ": ok, 5 callers, 2 issuers, 1 proxy, 1 grant issuer\n", ""},
		{"check of a small file", []string{"check", small}, exitDone, small + ": ok, 1 caller, 0 issuers, 0 proxies, 0 grant issuers\n", ""},
		{"check of what is wrong", []string{"check", wrong}, exitFailure, wrong + ":2: callers: is an empty list; must hold callers\n" + wrong + ":3: \ufffd[31m: there is no such key; there are version, issuers, proxies, grants, callers\n", ""},
		{"check of nothing", []string{"check", nothing}, exitFailure, nothing + ": is empty; must be a mapping of keys to values\n", ""},
		{"check of no file", []string{"check", "/nowhere"}, exitUsage, "", "open /nowhere"},
		{"check of a folder", []string{"check", t.TempDir()}, exitUsage, "", "is a directory"},
		{"check without a file", []string{"check"}, exitUsage, "", "takes FILE, got 0\nSee 'promptd policy check --help'."},
		{"check of two files", []string{"check", example, example}, exitUsage, "", "takes FILE, got 2"},

		{"test", []string{"test", example, cases}, exitDone, cases + ": 24 cases, 0 failed\n", ""},
		{"test that fails", []string{"test", small, failing}, exitFailure, failing + ":3: forged: expected ok, got REQUIRED_NOT_PERMITTED: custom (by entry c, " + small + ":2)\n" +
			failing + `:4: nobody: expected ok, got SCOPE_NOT_PERMITTED: scope "s" (no entry names mtls:d m)` + "\n" +
			failing + ":5: allowed by mistake: expected SCOPE_NOT_PERMITTED, got ok (by entry c, " + small + ":2)\n" +
			failing + ": 4 cases, 3 failed\n", ""},
		{"test of no case", []string{"test", example, noCase}, exitFailure, noCase + ":1: cases: is an empty list; must hold cases\n", ""},
		{"test of a wrong policy", []string{"test", nothing, cases}, exitFailure, nothing + ": is empty; must be a mapping of keys to values\n", ""},
		{"test of no file", []string{"test", wrong, "/nowhere"}, exitUsage, "", "open /nowhere"},
		{"test without cases", []string{"test", example}, exitUsage, "", "takes FILE and CASES, got 1"},

		{"explain", []string{"explain", example, "--identity", "jwt:https://idp.example.org agent", "--claim", "/tenant=a,b=c", "--scope", "tenant/a,b=c/1"}, exitDone, `identity    jwt:https://idp.example.org agent
entry       agent (line 37), by the identity jwt:https://idp.example.org agent (line 39)
scope       "tenant/a,b=c/1" is permitted by prefix "tenant/{claim:/tenant}" and '/' (line 41), where {claim:/tenant} is "a,b=c"
may assert  authorities user_default; required segments none
bounds      top_k at most 5, max_chars at most 3000, max_tokens at most 800
mandatory   none
`, ""},
		{"explain of nobody", []string{"explain", "--identity", "mtls:d n", example}, exitDone, "identity  mtls:d n\nentry     none: the file does not name this identity, so it may call ListTokenizers and nothing else\n", ""},
		{"explain without an identity", []string{"explain", example}, exitUsage, "", "--identity is missing"},
		{"explain of no identity", []string{"explain", example, "--identity", "harness"}, exitUsage, "", `--identity "harness": does not begin with mtls:, jwt:, xfcc: or grant:`},
		{"explain of no claim", []string{"explain", example, "--identity", "mtls:d n", "--claim", "x"}, exitUsage, "", `--claim "x": must be POINTER=VALUE`},
		{"explain of a claim that cannot be", []string{"explain", example, "--identity", "mtls:d n", "--claim", "/x=y"}, exitUsage, "", "a caller by mtls has no claims"},
		{"explain of a wrong policy", []string{"explain", nothing, "--identity", "mtls:d n"}, exitFailure, nothing + ": is empty; must be a mapping of keys to values\n", ""},

		{"schema", []string{"schema"}, exitDone, policy.Schema, ""},
		{"schema of a file", []string{"schema", example}, exitUsage, "", "takes no arguments"},
		{"another", []string{"edit"}, exitUsage, "", `takes no arguments, got "edit"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), append([]string{"policy"}, test.args...), nil, &stdout, &stderr); status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
			if got := stdout.String(); got != test.stdout {
				t.Errorf("stdout %q, want %q", got, test.stdout)
			}
			if got := stderr.String(); !strings.Contains(got, test.stderr) || test.stderr == "" && got != "" {
				t.Errorf("stderr %q, want %q", got, test.stderr)
			}
		})
	}
}

func TestPolicyHelp(t *testing.T) {
	for command, want := range map[string][]string{
		"":        {"check", "test", "explain", "schema"},
		"check":   {"2 it cannot be read"},
		"test":    {"mtls:corp harness.example.org", "expect ", "blank "},
		"explain": {"jwt:https://idp.example.org harness", "--identity", "--claim", "--scope"},
	} {
		var output bytes.Buffer
		if status := run(t.Context(), append([]string{"policy"}, append(strings.Fields(command), "--help")...), nil, &output, &output); status != exitDone {
			t.Errorf("%s: exit status %d, want 0", command, status)
		}
		for _, text := range want {
			if !strings.Contains(output.String(), text) {
				t.Errorf("%s: no %s in %s", command, text, output.String())
			}
		}
	}
}
