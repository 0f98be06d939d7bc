package memory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// The tables of the stages are tests of Select whose policy lets everything through but what the
// stage is about. They give each candidate's fate in pipeline order: its id, its reason and, where
// there is one, the id of its winner.

type stageTest struct {
	name       string
	policy     memory.Policy
	candidates []memory.Candidate
	want       []string
}

const home = "u-1"

func runStageTests(t *testing.T, tests []stageTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(tt.policy, tt.candidates...)
			if diff := cmp.Diff(tt.want, fates(req, selectFrom(req)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func request(policy memory.Policy, candidates ...memory.Candidate) memory.Request {
	return memory.Request{Scope: home, Candidates: candidates, Policy: policy, Counter: tokens.Estimate{}}
}

// lenient lets everything through.
func lenient() memory.Policy {
	return memory.Policy{TopK: 1000, MaxChars: budget.Unlimited(), MaxTokens: budget.Unlimited()}
}

func mostRecent() memory.Policy {
	p := lenient()
	p.Winner = memory.MostRecent
	return p
}

var reasonNames = map[memory.Reason]string{
	memory.ScopeMismatch:       "SCOPE_MISMATCH",
	memory.LowConfidence:       "LOW_CONFIDENCE",
	memory.DuplicateContent:    "DUPLICATE_CONTENT",
	memory.AuthorityLoser:      "AUTHORITY_LOSER",
	memory.ConflictLoser:       "CONFLICT_LOSER",
	memory.TopKReached:         "TOP_K_REACHED",
	memory.CharBudgetExceeded:  "CHAR_BUDGET_EXCEEDED",
	memory.TokenBudgetExceeded: "TOKEN_BUDGET_EXCEEDED",
	memory.Selected:            "SELECTED",
}

func fates(req memory.Request, plan *memory.Plan) []string {
	var fates []string
	for _, d := range plan.Decisions {
		fate := req.Candidates[d.Candidate].ID + " " + reasonNames[d.Reason]
		if d.Winner >= 0 {
			fate += " " + req.Candidates[d.Winner].ID
		}
		fates = append(fates, fate)
	}
	return fates
}

// recalled is a candidate of the home scope, by user default, without a slot or a time.
func recalled(id, text string, score float64, with ...func(*memory.Candidate)) memory.Candidate {
	c := memory.Candidate{
		ID: id, Text: text, Scope: home, Score: score, SourceRank: 1,
		Provenance: memory.Provenance{SourceID: "s", SourceType: "chat"},
	}
	for _, set := range with {
		set(&c)
	}
	return c
}

func scope(s string) func(*memory.Candidate) { return func(c *memory.Candidate) { c.Scope = s } }

func rank(n uint32) func(*memory.Candidate) { return func(c *memory.Candidate) { c.SourceRank = n } }

func slot(key string) func(*memory.Candidate) {
	return func(c *memory.Candidate) { c.ConflictKey = key }
}

func source(id string) func(*memory.Candidate) {
	return func(c *memory.Candidate) { c.Provenance.SourceID = id }
}

// captured takes any RFC 3339 time.
func captured(at string) func(*memory.Candidate) {
	return func(c *memory.Candidate) { c.Provenance.CapturedAt = instant(at) }
}

func instant(rfc3339 string) memory.Instant {
	at, err := time.Parse(time.RFC3339Nano, rfc3339)
	if err != nil {
		panic(err)
	}
	return memory.InstantOf(at)
}

func workspace(c *memory.Candidate) { c.Authority = memory.WorkspaceOverride }

func currentTurn(c *memory.Candidate) { c.Authority = memory.CurrentTurn }

// ignoreDetail leaves the sentences for people to their own test.
var ignoreDetail = cmpopts.IgnoreFields(memory.Decision{}, "Detail")
