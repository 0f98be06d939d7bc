package main

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// tokenizersCommand is `promptctl tokenizers`.
type tokenizersCommand struct {
	service service
	output  *choice
}

func newTokenizers() *cobra.Command {
	c := &tokenizersCommand{}
	cmd := &cobra.Command{
		Use:   "tokenizers",
		Short: "List the token counters that a request can name",
		Long: `Calls ListTokenizers and prints each token counter: its name, whether it counts
exactly as the model of that name does, the version of its rule, and where the
rule comes from. Names of one source and version count alike.`,
		Example: `  promptctl tokenizers
  promptctl tokenizers -o json --server localhost:50051`,
		Args: cobra.NoArgs,
		RunE: c.run,
	}
	c.service.flags(cmd)
	c.output = outputFlag(cmd, "table")
	return cmd
}

func (c *tokenizersCommand) run(cmd *cobra.Command, _ []string) error {
	api, closeAPI, err := c.service.connect(cmd)
	if err != nil {
		return err
	}
	defer closeAPI()
	answer, err := api.ListTokenizers(cmd.Context(), &pb.ListTokenizersRequest{})
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	if err != nil {
		fmt.Fprint(cmd.ErrOrStderr(), "promptctl: ", describe(status.Convert(err)))
		return errReported
	}
	if c.output.value == "table" {
		return tokenizerTable(cmd.OutOrStdout(), answer)
	}
	text, err := compact(answer)
	if err != nil {
		return err
	}
	return writeIndented(cmd.OutOrStdout(), text)
}

func tokenizerTable(w io.Writer, answer *pb.ListTokenizersResponse) error {
	t := table{columns: []column{{title: "name", least: 20}, {title: "exact"}, {title: "version", least: 18}, {title: "source", least: 18}}}
	for _, c := range answer.GetTokenizers() {
		exact := "no"
		if c.GetExact() {
			exact = "yes"
		}
		t.rows = append(t.rows, row{cells: []string{c.GetName(), exact, c.GetVersion(), c.GetSource()}})
	}
	out := bufio.NewWriter(w)
	t.write(out, painter{})
	return out.Flush()
}
