package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// runCompared answers one request with each of the tokenizers, side by side.
func (c *callCommand) runCompared(ctx context.Context, api *client.Client, req *pb.SelectMemoryRequest, stdout, stderr io.Writer) error {
	var plans []*pb.MemoryContextPlan
	var answers []json.RawMessage
	for _, name := range c.tokenizers {
		named := proto.CloneOf(req)
		named.Tokenizer = name
		answer, err := api.SelectMemory(ctx, named)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			st := status.Convert(err)
			return c.refuse(st, printable("with "+name+": ")+describe(st), stdout, stderr)
		}
		text, err := compact(answer)
		if err != nil {
			return err
		}
		plans, answers = append(plans, answer.GetPlan()), append(answers, text)
	}
	if c.output.value == "table" {
		out := bufio.NewWriter(stdout)
		comparedTable(out, painterFor(c.color.value, stdout), plans)
		return out.Flush()
	}
	text, err := encodeJSON(struct {
		Answers []json.RawMessage `json:"answers"`
	}{answers})
	if err != nil {
		return err
	}
	return writeIndented(stdout, text)
}

// comparedTable prints what became of each memory in every plan. All list the same memories in the
// same order.
func comparedTable(w io.Writer, p painter, plans []*pb.MemoryContextPlan) {
	t := table{columns: []column{{title: "memory_id", least: 9}}}
	for _, plan := range plans {
		t.columns = append(t.columns, column{title: plan.GetTokenizer(), least: 12})
	}
	for i, first := range plans[0].GetDecisions() {
		line := row{cells: []string{first.GetMemoryId()}}
		selected := 0
		for _, plan := range plans {
			d := plan.GetDecisions()[i]
			cell := word(d.GetReason().String(), reasonPrefix)
			if d.GetPosition() > 0 {
				selected++
				cell = fmt.Sprintf("#%d, %d tokens", d.GetPosition(), d.GetCandidateTokens())
			}
			line.cells = append(line.cells, cell)
		}
		switch selected {
		case 0:
			line.colour = red
		case len(plans):
			line.colour = green
		default:
			line.colour = yellow
		}
		t.rows = append(t.rows, line)
	}
	t.write(w, p)
	for _, plan := range plans {
		fmt.Fprintf(w, "%s: %d selected, ", printable(plan.GetTokenizer()), len(plan.GetSelectedMemoryIds()))
		budgets(w, plan.GetUsedChars(), plan.GetPolicy().GetMaxChars(), plan.GetUsedTokens(), plan.GetPolicy().GetMaxTokens())
	}
}
