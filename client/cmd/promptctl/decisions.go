package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// selectTables prints what a SelectMemoryResponse decided.
func selectTables(w io.Writer, p painter, answer proto.Message) {
	memoryTable(w, p, answer.(*pb.SelectMemoryResponse).GetPlan())
}

// planTables prints what a PlanPromptResponse decided: on the memories, if there were any, and on
// the segments.
func planTables(w io.Writer, p painter, answer proto.Message) {
	response := answer.(*pb.PlanPromptResponse)
	if response.GetMemoryPlan() != nil {
		memoryTable(w, p, response.GetMemoryPlan())
		fmt.Fprintln(w)
	}
	segmentTable(w, p, response.GetPlan())
}

// memoryTable prints the decisions on memories, and the budgets.
func memoryTable(w io.Writer, p painter, plan *pb.MemoryContextPlan) {
	t := table{columns: []column{
		{title: "#", right: true},
		{title: "memory_id", least: 9},
		{title: "authority", least: 12},
		{title: "score", right: true},
		{title: "rank", right: true},
		{title: "chars", right: true},
		{title: "tokens", right: true},
		{title: "reason"},
	}}
	for _, d := range plan.GetDecisions() {
		place, tokens, c := "-", "-", red
		if d.GetStatus() == pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_SELECTED {
			place, c = number(d.GetPosition()), green
		}
		if d.CandidateTokens != nil {
			tokens = number(d.GetCandidateTokens())
		}
		t.rows = append(t.rows, row{
			cells: []string{
				place,
				d.GetMemoryId(),
				word(d.GetAuthority().String(), "AUTHORITY_"),
				strconv.FormatFloat(d.GetScore()+0, 'f', 4, 64), // -0 becomes 0
				number(d.GetSourceRank()),
				number(d.GetCandidateChars()),
				tokens,
				word(d.GetReason().String(), "MEMORY_DECISION_REASON_"),
			},
			colour: c,
			note:   d.GetDetail(),
		})
	}
	t.write(w, p)
	policy := plan.GetPolicy()
	budgets(w, plan.GetUsedChars(), policy.GetMaxChars(), plan.GetUsedTokens(), policy.GetMaxTokens())
}

// segmentTable prints the decisions on segments, and the budgets.
func segmentTable(w io.Writer, p painter, plan *pb.PromptPlan) {
	t := table{columns: []column{
		{title: "#", right: true},
		{title: "name", least: 10},
		{title: "kind", least: 10},
		{title: "prio", right: true},
		{title: "budget", right: true},
		{title: "req"},
		{title: "chars", right: true},
		{title: "tokens", right: true},
		{title: "reason"},
	}}
	placed := 0
	for _, d := range plan.GetDecisions() {
		place, chars, c := "-", d.GetOriginalChars(), yellow
		switch d.GetStatus() {
		case pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_INCLUDED:
			placed++
			place, chars, c = strconv.Itoa(placed), d.GetRenderedChars(), green
		case pb.SegmentDecisionStatus_SEGMENT_DECISION_STATUS_INACTIVE:
			c = dim
		}
		required, tokens := "no", "-"
		if d.GetRequired() {
			required = "yes"
		}
		if d.SegmentTokens != nil {
			tokens = number(d.GetSegmentTokens())
		}
		t.rows = append(t.rows, row{
			cells: []string{
				place,
				d.GetName(),
				word(d.GetKind().String(), "SEGMENT_KIND_"),
				strconv.Itoa(int(d.GetPriority())),
				strconv.Itoa(int(d.GetBudgetPriority())),
				required,
				number(chars),
				tokens,
				word(d.GetReason().String(), "SEGMENT_DECISION_REASON_"),
			},
			colour: c,
			note:   d.GetDetail(),
		})
	}
	t.write(w, p)
	budgets(w, plan.GetUsedChars(), plan.GetMaxChars(), plan.GetUsedTokens(), plan.GetMaxTokens())
}

// budgets prints how much of each budget was used.
func budgets(w io.Writer, chars uint32, maxChars *pb.Budget, tokens uint32, maxTokens *pb.Budget) {
	fmt.Fprintf(w, "chars %d%s, tokens %d%s\n", chars, ceiling(maxChars), tokens, ceiling(maxTokens))
}

func ceiling(b *pb.Budget) string {
	if limit, ok := b.GetBound().(*pb.Budget_Limit); ok {
		return fmt.Sprintf(" of %d", limit.Limit)
	}
	return " (unlimited)"
}

// word is the name of an enum value as people read it: without its prefix, in lower case.
func word(value, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value, prefix))
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
