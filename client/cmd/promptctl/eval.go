package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// evalCommand is `promptctl eval`.
type evalCommand struct {
	service   service
	output    *choice
	policy    string
	tokenizer string
	evidence  string
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
list: all texts in the order of the decisions, one a line, without any tags,
each taken if it fits the same top_k, max_chars and max_tokens, whatever the
decision on it was. The bare list is counted in this program: a request that names
a tokenizer that 'promptctl tokenizers' does not list without --server ends the
evaluation.`,
		Example: `  promptctl eval requests.jsonl
  promptctl eval --policy '{"topK": 10, "maxTokens": {"limit": 400}}' requests.jsonl
  promptctl eval --tokenizer o200k_base --evidence evidence.jsonl requests.jsonl
  promptctl eval --evidence evidence.jsonl -o json requests.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: e.run,
	}
	e.service.flags(cmd)
	e.output = outputFlag(cmd, "table")
	cmd.Flags().StringVar(&e.policy, "policy", "", "a MemorySelectionPolicy in JSON that replaces the policy of every request")
	cmd.Flags().StringVar(&e.tokenizer, "tokenizer", "", "the tokenizer to use in place of every request's")
	completeTokenizers(cmd)
	cmd.Flags().StringVar(&e.evidence, "evidence", "", "file with the memory ids that hold the answer, a JSON array a line")
	return cmd
}

func (e *evalCommand) run(cmd *cobra.Command, args []string) error {
	ev := evaluator{
		service: e.service, stderr: cmd.ErrOrStderr(), tokenizer: e.tokenizer, counters: tokens.NewSet(server.Tokenizers()...),
	}
	if cmd.Flags().Changed("policy") {
		ev.policy = new(pb.MemorySelectionPolicy)
		if err := parseJSON([]byte(e.policy), ev.policy); err != nil {
			return usageError{fmt.Errorf("--policy: %w", err)}
		}
	}
	if e.evidence != "" {
		file, err := os.Open(e.evidence)
		if err != nil {
			return usageError{err}
		}
		defer file.Close()
		ev.evidence = &evidenceReader{lines: newLineReader(file)}
	}
	api, closeAPI, err := e.service.connect(cmd)
	if err != nil {
		return err
	}
	defer closeAPI()
	ev.api = api
	in, err := openInput(cmd, args)
	if err != nil {
		return err
	}
	defer in.Close()

	if err := e.service.reach(cmd.Context(), api); err != nil {
		return err
	}
	report, err := ev.evaluate(cmd.Context(), in)
	if err != nil {
		return err
	}
	if e.output.value == "table" {
		return report.writeTable(cmd.OutOrStdout())
	}
	text, err := encodeJSON(report)
	if err != nil {
		return err
	}
	return writeIndented(cmd.OutOrStdout(), text)
}
