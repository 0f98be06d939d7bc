package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/policy"
)

var (
	separators = rapid.SampledFrom([]string{"/", ":", ".", "|", "#"})
	words      = rapid.StringMatching(`[a-z0-9]{1,8}`)
)

// A prefix covers what is below it, and neither itself nor anything beside it.
func TestPrefixNeverCoversASibling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := strings.Join(rapid.SliceOfN(words, 1, 3).Draw(t, "prefix"), "/")
		separator := separators.Draw(t, "separator")
		rest := rapid.StringMatching(`[a-z0-9/:.|#]{0,6}`).Draw(t, "rest")
		p, err := policy.Parse([]byte(caller("scopes:", fmt.Sprintf("  - {prefix: '%s', separator: '%s'}", prefix, separator))))
		if err != nil {
			t.Fatal(err)
		}
		r := p.Rights(&identity.Caller{Identity: identity.Identity{Source: identity.MTLS, Issuer: "d", Name: "n"}})
		_, got := r.For(prefix + rest)
		if want := len(rest) > 1 && rest[:1] == separator; got != want {
			t.Errorf("%q covers %q: %v, want %v", prefix, prefix+rest, got, want)
		}
		if _, got := r.For("x" + prefix + separator + "y"); got && !strings.HasPrefix("x"+prefix, prefix+separator) {
			t.Errorf("%q covers what does not begin with it", prefix)
		}
	})
}

// Whatever two tokens claim, they get one scope from a template only if they claim the same, and none
// from a value that is empty or holds the separator.
func TestValuesNeverMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		separator := separators.Draw(t, "separator")
		head, middle := rapid.StringMatching(`[a-z/:.|#]{0,3}`).Draw(t, "head"), rapid.StringMatching(`[a-z]{0,2}`).Draw(t, "middle")
		kind := rapid.SampledFrom([]string{"exact", "prefix"}).Draw(t, "kind")
		text := issuer("{issuer: i, keys: {file: /k}, audiences: [a], claims: [/a, /b]}")
		text, _, _ = strings.Cut(text, "callers:")
		p, err := policy.Parse([]byte(text + fmt.Sprintf(
			"callers: [{name: c, identities: [{source: jwt, issuer: i, subject: s}], scopes: [{%s: '%s{claim:/a}%s%s{claim:/b}', separator: '%s'}]}]",
			kind, head, middle, separator, separator)))
		if err != nil {
			t.Fatal(err)
		}
		values := rapid.StringMatching(`[ab/:.|#]{0,4}`)
		rights := func(a, b string) *policy.Rights {
			return p.Rights(&identity.Caller{
				Identity: identity.Identity{Source: identity.JWT, Issuer: "i", Name: "s"},
				Claims:   map[string]string{"/a": a, "/b": b},
			})
		}
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		scope := head + a + middle + separator + b
		if kind == "prefix" {
			scope += separator + "z"
		}
		_, got := rights(a, b).For(scope)
		if want := a != "" && b != "" && !strings.Contains(a+b, separator); got != want {
			t.Errorf("%q for %q and %q: %v, want %v", scope, a, b, got, want)
		}
		c, d := values.Draw(t, "c"), values.Draw(t, "d")
		if _, also := rights(c, d).For(scope); got && also && (a != c || b != d) {
			t.Errorf("%q is of %q and %q, and of %q and %q", scope, a, b, c, d)
		}
	})
}

// An exact identity decides, wherever it stands among patterns that match it; without it, the first of
// them does.
func TestExactWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(words, 1, 4).Draw(t, "path")
		var lines []string
		for range rapid.IntRange(0, 5).Draw(t, "patterns") {
			segments := append([]string{"ns"}, path...)
			for j := range path {
				if rapid.Bool().Draw(t, "wild") {
					segments[j+1] = "*"
				}
			}
			if rapid.Bool().Draw(t, "any first") {
				segments[0] = "*"
			}
			line := strings.Join(segments, "/")
			if strings.Contains(line, "*") {
				lines = append(lines, line)
			}
		}
		entries := func(lines []string) string {
			text := "version: 1\ncallers:\n"
			for i, line := range lines {
				text += fmt.Sprintf("  - {name: '%d %s', identities: [{source: mtls, spiffe: 'spiffe://example.org/%s'}]}\n", i, line, line)
			}
			return text
		}
		// A pattern that is covered is refused, which is not what this is about.
		kept := lines[:0:0]
		for _, line := range lines {
			if _, err := policy.Parse([]byte(entries(append(kept[:len(kept):len(kept)], line)))); err == nil {
				kept = append(kept, line)
			}
		}
		exact := "ns/" + strings.Join(path, "/")
		at := rapid.IntRange(0, len(kept)).Draw(t, "at")
		with := append(append(kept[:at:at], exact), kept[at:]...)
		p, err := policy.Parse([]byte(entries(with)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.Rights(spiffe(identity.MTLS, "/"+exact)).Rule(), fmt.Sprintf("%d %s", at, exact); got != want {
			t.Errorf("entry %q, want %q", got, want)
		}
		if len(kept) > 0 {
			p, err := policy.Parse([]byte(entries(kept)))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := p.Rights(spiffe(identity.MTLS, "/"+exact)).Rule(), "0 "+kept[0]; got != want {
				t.Errorf("entry %q, want %q", got, want)
			}
		}
	})
}

// Whatever is in a file, it is read or refused with lines of the file, and what is read is explained.
func FuzzParse(f *testing.F) {
	for _, tests := range [][]fault{formFaults, meaningFaults} {
		for _, test := range tests {
			f.Add([]byte(test.text))
		}
	}
	f.Add([]byte(everyKey))
	for _, name := range []string{"example.yaml", "cases.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	named := example(f)
	callers := []*identity.Caller{
		spiffe(identity.MTLS, "/ns/prod/sa/worker"), spiffe(identity.JWT, "/ns/prod/sa/worker"), token("agent", "acme"),
		{Identity: identity.Identity{Source: identity.MTLS, Issuer: "d", Name: "n"}},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(err error) {
			if err == nil {
				return
			}
			wrong, ok := errors.AsType[*policy.Error](err)
			if !ok || len(wrong.Faults) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			for _, fault := range wrong.Faults {
				if fault.Line < 0 || fault.Line > len(data)+1 || fault.Problem == "" {
					t.Errorf("%+v", fault)
				}
			}
			_ = err.Error()
		}
		_, err := named.ParseCases(data)
		check(err)
		p, err := policy.Parse(data)
		check(err)
		if p == nil {
			return
		}
		var text strings.Builder
		for _, c := range callers {
			for _, scope := range []string{"", "s", "team/a/1"} {
				if err := p.Explain(&text, c, scope); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
