package policy

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/yamlfile"
	"github.com/promptassembly/promptassembly/server/memory"
)

// Case is one row of a table of who may what.
type Case struct {
	Name string
	// Line is where it stands in the file, from 1.
	Line   int
	Caller *identity.Caller
	// Relay is who carries a grant of Caller; nil: Caller calls.
	Relay    *identity.Caller
	Asserted Asserted
	// Expect is why it must be refused; UNSPECIFIED: it must not.
	Expect pb.ErrorReason
}

// Run judges the case. The rights are nil if the policy does not name the caller, and the denial is nil
// if the request is permitted.
func (c *Case) Run(p *Policy) (r *Rights, d *Denial, passed bool) {
	r = p.Rights(c.Caller)
	if c.Relay == nil {
		d = r.Judge(&c.Asserted)
	} else if relay := p.Rights(c.Relay); relay.MayRelay(c.Caller.Issuer, &c.Asserted) {
		d = r.Judge(&c.Asserted)
	} else {
		r, d = relay, &Denial{Reason: pb.ErrorReason_ERROR_REASON_GRANT_INVALID}
	}
	reason := pb.ErrorReason_ERROR_REASON_UNSPECIFIED
	if d != nil {
		reason = d.Reason
	}
	return r, d, reason == c.Expect
}

// Expected returns the name of what must come, as it is written in the table.
func (c *Case) Expected() string { return reasonName(c.Expect) }

// reasonName returns the name of a reason in a table: ok for none, else that of the contract.
func reasonName(r pb.ErrorReason) string {
	if r == pb.ErrorReason_ERROR_REASON_UNSPECIFIED {
		return "ok"
	}
	return strings.TrimPrefix(r.String(), "ERROR_REASON_")
}

// ParseCases reads a table of who may what under the policy, as strictly as Parse reads a policy. The
// error is an *Error with everything that is wrong.
func (p *Policy) ParseCases(data []byte) ([]Case, error) {
	t := &table{policy: p}
	root := t.document(data)
	if root.Node == nil {
		return nil, t.err()
	}
	var cases []Case
	if values, ok := t.mapping(root, "cases"); ok && t.required(root, values, "cases") {
		t.distinct(t.list(values["cases"], 1, "cases"), func(element field) (string, bool) {
			c, ok := t.row(element)
			cases = append(cases, c)
			return c.Name, ok
		})
	}
	return cases, t.err()
}

// table is a file of cases as it is read.
type table struct {
	reader
	policy *Policy
}

var verdicts = []pb.ErrorReason{
	pb.ErrorReason_ERROR_REASON_UNSPECIFIED,
	pb.ErrorReason_ERROR_REASON_GRANT_INVALID,
	pb.ErrorReason_ERROR_REASON_SCOPE_NOT_PERMITTED,
	pb.ErrorReason_ERROR_REASON_AUTHORITY_NOT_PERMITTED,
	pb.ErrorReason_ERROR_REASON_REQUIRED_NOT_PERMITTED,
	pb.ErrorReason_ERROR_REASON_POLICY_NOT_PERMITTED,
	pb.ErrorReason_ERROR_REASON_MANDATORY_SEGMENT_MISSING,
}

const (
	selectMemory = "select_memory"
	planPrompt   = "plan_prompt"
)

func (t *table) row(element field) (Case, bool) {
	c := Case{Line: element.Line}
	values, ok := t.mapping(element, "name", "identity", "relay", "claims", "call", "scope", "authorities", "policy", "required", "blank", "expect")
	if !ok || !t.required(element, values, "name", "identity", "expect") {
		return c, false
	}
	c.Name, ok = t.checked(values["name"], "text of 1 to 256 bytes without control characters", nameRule)
	c.Caller = t.identity(values["identity"])
	if values["relay"].Node != nil {
		c.Relay = t.identity(values["relay"])
		if c.Caller != nil && c.Caller.Source != identity.Grant {
			t.wrong(values["relay"], "carries a grant, and %s signs none; its identity must be grant:ISSUER", FormatIdentity(c.Caller))
		}
		t.claims(values["claims"], c.Relay)
	} else {
		t.claims(values["claims"], c.Caller)
	}

	names := make([]string, len(verdicts))
	for i, verdict := range verdicts {
		names[i] = reasonName(verdict)
	}
	if verdict, ok := t.choice(values["expect"], names...); ok {
		c.Expect = verdicts[slices.Index(names, verdict)]
	}

	a := &c.Asserted
	a.Scope, _ = t.checked(values["scope"], "a scope of 1 to 256 bytes", nameRule)
	a.Memory = values["scope"].Node != nil
	a.Prompt = !a.Memory || values["required"].Node != nil || values["blank"].Node != nil
	if v := values["call"]; v.Node != nil {
		t.call(v, values, a)
	}
	t.memory(values, a)
	for i, kind := range t.kinds(values["required"]) {
		a.Require(i, KindName(kind), kind, false)
	}
	for i, kind := range t.kinds(values["blank"]) {
		a.Require(len(kindNames)+i, KindName(kind), kind, true)
	}
	return c, ok
}

// identity returns nil after a fault.
func (t *table) identity(v field) *identity.Caller {
	text, ok := t.text(v, "an identity, SOURCE:SPIFFE-ID, SOURCE:ISSUER NAME or grant:ISSUER")
	if !ok {
		return nil
	}
	c, err := ParseIdentity(text)
	if err != nil {
		t.wrong(v, "%v", err)
	}
	return c
}

// claims gives a caller what its token says.
func (t *table) claims(claims field, c *identity.Caller) {
	if claims.Node == nil || c == nil {
		return
	}
	if claims.Kind != yaml.MappingNode {
		t.wrong(claims, "is %s; must be a mapping of JSON pointers to text", yamlfile.What(claims.Node))
		return
	}
	var pointers []string
	for i := 0; i < len(claims.Content); i += 2 {
		pointers = append(pointers, claims.Content[i].Value)
	}
	slices.Sort(pointers)
	pointers = slices.Compact(pointers)
	values, _ := t.mapping(claims, pointers...)
	for _, pointer := range pointers {
		if value, ok := t.text(values[pointer], "text"); ok {
			if err := t.policy.Claim(c, pointer, value); err != nil {
				t.wrong(values[pointer], "%v", err)
			}
		}
	}
}

// call reads which call is made, where that does not follow from the rest.
func (t *table) call(v field, values map[string]field, a *Asserted) {
	switch call, _ := t.choice(v, selectMemory, planPrompt); call {
	case planPrompt:
		a.Prompt = true
	case selectMemory:
		if !a.Memory {
			t.wrong(v, "a memory is selected for a scope, which is missing")
		}
		for _, key := range []string{"required", "blank"} {
			if values[key].Node != nil {
				t.wrong(values[key], "is for a prompt; %s has no segments", selectMemory)
			}
		}
	}
}

// memory reads what is about memory alone.
func (t *table) memory(values map[string]field, a *Asserted) {
	a.Policy = memory.DefaultPolicy()
	for _, key := range []string{"authorities", "policy"} {
		if values[key].Node != nil && !a.Memory {
			t.wrong(values[key], "is for memory, and there is none without a scope")
		}
	}
	for i, authority := range t.authorities(values["authorities"]) {
		a.Candidate(i, authority)
	}
	v := values["policy"]
	if v.Node == nil {
		return
	}
	set, ok := t.mapping(v, "min_score", "top_k", "max_chars", "max_tokens")
	if !ok {
		return
	}
	if x := t.fraction(set["min_score"]); x != nil {
		a.Policy.MinScore = *x
	}
	if n := t.whole(set["top_k"], 1<<32-1); n != nil {
		a.Policy.TopK = *n
	}
	t.budget(set["max_chars"], &a.Policy.MaxChars)
	t.budget(set["max_tokens"], &a.Policy.MaxTokens)
}

func (t *table) budget(v field, b *budget.Budget) {
	if v.Node != nil && v.Kind == yaml.ScalarNode && v.Value == "unlimited" {
		*b = budget.Unlimited()
	} else if n := t.whole(v, 1<<32-1); n != nil {
		*b = budget.Of(*n)
	}
}
