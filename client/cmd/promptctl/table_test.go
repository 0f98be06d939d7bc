package main

import (
	"context"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/mattn/go-runewidth"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// checkTable fails if a line is wider than a terminal, or holds what does not belong on one.
func checkTable(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if width := runewidth.StringWidth(line); width > 80 {
			t.Errorf("a line of %d cells: %q", width, line)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is in the line %q", r, line)
			}
		}
	}
}

// answer serves one fixed answer and returns what `select -o table` makes of it.
func answerAsTable(t *testing.T, plan *pb.MemoryContextPlan, args ...string) string {
	t.Helper()
	address := serve(t, func(context.Context, *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
		return &pb.SelectMemoryResponse{Plan: plan}, nil
	})
	got := promptctl(t, "{}", append([]string{"select", "-o", "table", "--server", address}, args...)...)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("got %+v", got)
	}
	return got.stdout
}

func decision(id string, score float64, rank, chars uint32) *pb.MemoryDecision {
	return &pb.MemoryDecision{
		MemoryId:       id,
		Status:         pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_REJECTED,
		Reason:         pb.MemoryDecisionReason_MEMORY_DECISION_REASON_TOP_K_REACHED,
		Authority:      pb.Authority_AUTHORITY_USER_DEFAULT,
		Score:          score,
		SourceRank:     rank,
		CandidateChars: chars,
		Detail:         "the place was taken",
	}
}

func TestTableLayout(t *testing.T) {
	selected := decision("语言偏好", 0.93, 2, 118)
	selected.Status = pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_SELECTED
	selected.Reason = pb.MemoryDecisionReason_MEMORY_DECISION_REASON_SELECTED
	selected.Authority = pb.Authority_AUTHORITY_CURRENT_TURN
	selected.Position = 1
	selected.CandidateTokens = new(uint32(31))
	selected.Detail = "a sentence that is longer than what one line of the table can take, with 中文字符 and 🙂 in it"
	got := answerAsTable(t, &pb.MemoryContextPlan{
		Decisions:  []*pb.MemoryDecision{selected, decision("m2", math.Copysign(0, -1), 10, 1204)},
		UsedChars:  512,
		UsedTokens: 131,
		Policy: &pb.MemorySelectionPolicy{
			MaxChars:  &pb.Budget{Bound: &pb.Budget_Limit{Limit: 3000}},
			MaxTokens: &pb.Budget{Bound: &pb.Budget_Unlimited{Unlimited: true}},
		},
	})
	want := `# memory_id authority     score rank chars tokens reason
1 语言偏好  current_turn 0.9300    2   118     31 selected
    a sentence that is longer than what one line of the table can take, with
    中文字符 and 🙂 in it
- m2        user_default 0.0000   10  1204      - top_k_reached
    the place was taken
chars 512 of 3000, tokens 131 (unlimited)
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A server, or a memory behind it, may send anything.
func TestTableOfHostileAnswer(t *testing.T) {
	long := strings.Repeat("很长的标识", 50)
	hostile := decision("\x1b]0;owned\a\x1b[2J\u009b31m\u202e\r\n\t"+long, 1e300, math.MaxUint32, math.MaxUint32)
	hostile.CandidateTokens = new(uint32(math.MaxUint32))
	hostile.Position = math.MaxUint32
	hostile.Status = pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_SELECTED
	hostile.Authority = 77
	hostile.Detail = "\x1b[31m" + long + "👩\u200d💻 " + strings.Repeat("e\u0301", 200)
	plan := &pb.MemoryContextPlan{Decisions: []*pb.MemoryDecision{hostile, decision("m2", math.NaN(), 1, 1), {}}}
	got := answerAsTable(t, plan)
	checkTable(t, got)
	if !strings.Contains(got, "\uFFFD[31m") {
		t.Errorf("the escape character is not replaced:\n%s", got)
	}
}

func TestLongIDIsCut(t *testing.T) {
	d := decision(strings.Repeat("x", 60), 0.5, 12, 345)
	d.Authority = pb.Authority_AUTHORITY_WORKSPACE_OVERRIDE
	got := answerAsTable(t, &pb.MemoryContextPlan{Decisions: []*pb.MemoryDecision{d}})
	// 80 cells less those of the other columns and the spaces between: 1+18+6+4+5+6+13 and 7.
	row := strings.Split(got, "\n")[1]
	if want := "- " + strings.Repeat("x", 19) + "… workspace_override 0.5000   12   345      - top_k_reached"; row != want {
		t.Errorf("got  %q\nwant %q", row, want)
	}
}

func TestPlanTable(t *testing.T) {
	got := promptctl(t, `{"maxChars":{"limit":40},"segments":[
		{"kind":"SEGMENT_KIND_BASE_INSTRUCTIONS","text":"Be careful."},
		{"kind":"SEGMENT_KIND_IDENTITY","text":"I am an agent with a name that is much too long."},
		{"kind":"SEGMENT_KIND_EXPERT_INSTRUCTIONS","text":" "},
		{"kind":"SEGMENT_KIND_REGIONAL_CONVENTIONS","text":"Use metres."}]}`, "plan", "-o", "table")
	if got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	checkTable(t, got.stdout)
	var rows []string
	for line := range strings.SplitSeq(got.stdout, "\n") {
		if !strings.HasPrefix(line, "    ") {
			rows = append(rows, line)
		}
	}
	// In full the kinds would make lines of 81 cells.
	want := []string{
		"# name     kind                prio budget req chars tokens reason",
		"1 base     base_instructions     10      0 yes    11      3 required",
		"- identity identity              20     90 no     48      - char_budget_exceeded",
		"- expert   expert_instructions   50     85 no      1      - empty_content",
		"2 region   regional_conventio…   70     20 no     11      3 fits_budget",
		"chars 29 of 40, tokens 9 (unlimited)", // 11 + 7 + 11; 3 + "---" + 3
		"",
	}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

func TestColour(t *testing.T) {
	selected := decision("m1", 0.9, 1, 10)
	selected.Status = pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_SELECTED
	plan := &pb.MemoryContextPlan{Decisions: []*pb.MemoryDecision{selected, decision("m2", 0.5, 2, 10)}}
	t.Setenv("NO_COLOR", "1")
	always := strings.Split(answerAsTable(t, plan, "--color", "always"), "\n")
	if !strings.HasPrefix(always[1], "\x1b[32m") || !strings.HasPrefix(always[3], "\x1b[31m") || !strings.HasSuffix(always[3], "\x1b[0m") {
		t.Errorf("always: %q", always)
	}
	t.Setenv("NO_COLOR", "")
	for _, when := range []string{"never", "auto"} { // the output is no terminal
		if got := answerAsTable(t, plan, "--color", when); strings.Contains(got, "\x1b") {
			t.Errorf("%s: %q", when, got)
		}
	}
}
