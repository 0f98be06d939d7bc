package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

type evalCommand struct {
	service  service
	output   *choice
	policy   string
	evidence string

	conn      grpc.ClientConnInterface
	newPolicy *pb.MemorySelectionPolicy // nil: each request's own
}

func newEval() *cobra.Command {
	e := &evalCommand{}
	cmd := &cobra.Command{
		Use:   "eval REQUESTS|-",
		Short: "Measure what selection keeps over a file of requests",
		Long: `Calls SelectMemory with each line of REQUESTS and prints how many memories were
selected and rejected, by reason, and how much of the budgets was used: the mean
of used/limit over the answers that have a limit above 0.

With --evidence, line for line a JSON array of the memory ids that hold the
answer, it also prints the evidence recall: evidence ids among the selected by
all evidence ids. It does so for the renderings FULL and COMPACT, and for a bare
list: the texts in the order of the decisions, one a line, without any tags,
taken while they fit the same top_k, max_chars and max_tokens. The bare list is
counted by the tokenizer estimate; requests with another are refused then.`,
		Example: `  promptctl eval requests.jsonl
  promptctl eval --policy '{"topK": 10, "maxTokens": {"limit": 400}}' requests.jsonl
  promptctl eval --evidence evidence.jsonl -o json requests.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: e.run,
	}
	e.service.flags(cmd)
	e.output = outputFlag(cmd)
	cmd.Flags().StringVar(&e.policy, "policy", "", "a MemorySelectionPolicy in JSON that replaces the policy of every request")
	cmd.Flags().StringVar(&e.evidence, "evidence", "", "file with the memory ids that hold the answer, a JSON array a line")
	return cmd
}
