package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/policy"
)

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(policy.Schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("policy.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// What is wrong in form is wrong for the schema, too, and the other way round.
func TestSchemaAndParseAgree(t *testing.T) {
	schema := compile(t)
	valid := func(text string) error {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(document)
	}
	for _, test := range append(slices.Clone(formFaults), grantFormFaults...) {
		t.Run(test.name, func(t *testing.T) {
			if valid(test.text) == nil {
				t.Error("the schema finds nothing wrong")
			}
		})
	}

	file, err := os.ReadFile(filepath.Join("testdata", "example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"example":         string(file),
		"every key":       everyKey,
		"grants":          granted("[{issuer: i, scopes: [{any: true}]}, {issuer: j, scopes: []}]"),
		"identities":      identities("{source: mtls, spiffe: 'spiffe://example.org/{a_1}/*/b.c-d'}", "{source: mtls, trust_domain: d, name: 'a b'}", "{source: jwt, issuer: 'https://idp.example.org', subject: 'system:serviceaccount:a:b'}"),
		"scopes":          scopes("{exact: 'a{{b}}'}", "{exact: ü}", "{exact: 'a b'}", "{prefix: '{ns}', separator: '|'}", "{exact: '{{{ns}}}/{sa}', separator: /}"),
		"any scope":       scopes("{exact: a}", "{any: true, authorities: [current_turn], required: []}"),
		"empty lists":     caller("authorities: []", "required: []", "scopes: []", "mandatory: []", "bounds: {}"),
		"bounds at edges": caller("bounds: {min_score: 1, top_k: 0, max_chars: 4294967295, max_tokens: 0}"),
		"an https port":   issuer(`{issuer: i, keys: {url: "HTTPS://h:8443?x=y"}, audiences: [a]}`),
		"an http port":    issuer(`{issuer: i, keys: {url: "http://[::1]:80/k", bearer_file: /b}, audiences: [a]}`),
	} {
		t.Run(name, func(t *testing.T) {
			parse(t, text)
			if err := valid(text); err != nil {
				t.Error(err)
			}
		})
	}
}

const everyKey = `
version: 1
issuers:
  - issuer: https://idp.example.org
    keys: {url: https://idp.example.org/jwks, ca_file: /c, bearer_file: /b}
    audiences: [a]
    several_audiences: true
    algorithms: [RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA]
    claims: [/a, /b~0~1c/0]
  - {spiffe_trust_domain: example.org, keys: {file: /k}, audiences: [a]}
proxies:
  - {peer: {spiffe: spiffe://example.org/envoy}, caller: xfcc, trust_domains: [example.org]}
  - {peer: {unix_uid: 4294967294}, caller: jwt}
callers:
  - name: c
    identities:
      - {source: jwt, spiffe: 'spiffe://example.org/{ns}'}
    authorities: [user_default, workspace_override, current_turn]
    required: [base_instructions, identity, project_context, tool_descriptions, expert_instructions, skill_instructions,
      connector_status, regional_conventions, working_mode, custom]
    scopes:
      - {exact: s, authorities: [], required: [custom]}
      - {prefix: p, separator: /, authorities: [current_turn]}
    bounds: {min_score: 0.5, top_k: 1, max_chars: 1, max_tokens: 1}
    mandatory: [custom]
    may_relay: [{issuer: i, scopes: [{prefix: p, separator: /}]}]
  - {name: d, identities: [{source: grant, issuer: i}]}
grants:
  - {issuer: i, keys: {url: https://i/jwks, ca_file: /c, bearer_file: /b}, audiences: [a]}
`

// Every key says what it is and what it is by default, unless it must be there.
func TestSchemaDescribesEveryKey(t *testing.T) {
	var document any
	if err := json.Unmarshal([]byte(policy.Schema), &document); err != nil {
		t.Fatal(err)
	}
	keys := 0
	var walk func(path string, node any)
	walk = func(path string, node any) {
		object, _ := node.(map[string]any)
		if list, ok := node.([]any); ok {
			for _, element := range list {
				walk(path, element)
			}
		}
		for name, child := range object {
			properties, ok := child.(map[string]any)
			// Those of a condition narrow what is described elsewhere.
			if name != "properties" || !ok || object["additionalProperties"] == nil {
				walk(path, child)
				continue
			}
			for key, property := range properties {
				keys++
				description, _ := property.(map[string]any)["description"].(string)
				said := false
				for _, word := range []string{"Default: ", "equired", "instead of spiffe", "another form can stand instead"} {
					said = said || strings.Contains(description, word)
				}
				if !said || !strings.HasSuffix(description, ".") {
					t.Errorf("%s.%s: %q", path, key, description)
				}
				walk(path+"."+key, property)
			}
		}
	}
	walk("", document)
	if keys != 50 {
		t.Errorf("%d keys, want 50", keys)
	}
	for _, algorithm := range identity.Algorithms {
		if !strings.Contains(policy.Schema, `"`+algorithm+`"`) {
			t.Errorf("no algorithm %s", algorithm)
		}
	}
}
