package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// firstOf is the first request of the evaluation, under 97 tokens: the tags take 17 of estimate's and 18
// of o200k_base's, a line 40 of either.
func firstOf(t *testing.T) string {
	t.Helper()
	request, _, _ := strings.Cut(evalRequests, "\n")
	return strings.Replace(request, `"maxTokens":{"limit":60}`, `"maxTokens":{"limit":97}`, 1)
}

func TestSelectSideBySide(t *testing.T) {
	got := promptctl(t, firstOf(t), "select", "-o", "table", "--tokenizer", "estimate,o200k_base")
	want := `memory_id estimate             o200k_base
m1        #1, 40 tokens        #1, 40 tokens
m2        #2, 40 tokens        token_budget_exceeded
m3        char_budget_exceeded token_budget_exceeded
m4        low_confidence       low_confidence
estimate: 2 selected, chars 321 of 386, tokens 97 of 97
o200k_base: 1 selected, chars 193 of 386, tokens 58 of 97
`
	if got.status != 0 || got.stderr != "" || got.stdout != want {
		t.Errorf("status %d, stderr %q, stdout\n%s\nwant\n%s", got.status, got.stderr, got.stdout, want)
	}
}

func TestSelectSideBySideJSON(t *testing.T) {
	got := promptctl(t, firstOf(t), "select", "--tokenizer", "o200k_base,estimate")
	var out struct {
		Answers []struct {
			Plan struct {
				Tokenizer         string
				SelectedMemoryIDs []string `json:"selectedMemoryIds"`
			}
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || got.status != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	var plans []string
	for _, answer := range out.Answers {
		plans = append(plans, answer.Plan.Tokenizer+" "+strings.Join(answer.Plan.SelectedMemoryIDs, " "))
	}
	if got := strings.Join(plans, ", "); got != "o200k_base m1, estimate m1 m2" {
		t.Errorf("answers %s", got)
	}
}

// One tokenizer takes the place of the request's, also of each line's.
func TestSelectWithTokenizer(t *testing.T) {
	const named = `"tokenizer": "o200k_base"`
	got := promptctl(t, firstOf(t), "select", "--tokenizer", "o200k_base")
	if got.status != 0 || !strings.Contains(got.stdout, named) || strings.Contains(got.stdout, "answers") {
		t.Errorf("got %+v", got)
	}
	got = promptctl(t, firstOf(t)+"\n", "select", "--jsonl", "--tokenizer", "o200k_base")
	if got.status != 0 || !strings.Contains(got.stdout, strings.ReplaceAll(named, " ", "")) {
		t.Errorf("lines: %+v", got)
	}
}

func TestSelectWithUnknownTokenizer(t *testing.T) {
	got := promptctl(t, firstOf(t), "select", "--tokenizer", "estimate,gpt")
	if got.status != 1 || !strings.HasPrefix(got.stderr, "promptctl: with gpt: INVALID_ARGUMENT (UNKNOWN_TOKENIZER): ") ||
		!strings.Contains(got.stdout, `"UNKNOWN_TOKENIZER"`) {
		t.Errorf("got %+v", got)
	}
}
