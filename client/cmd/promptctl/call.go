package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// callCommand is `promptctl select` or `promptctl plan`.
type callCommand struct {
	rpc     rpc
	tables  func(w io.Writer, p painter, answer proto.Message)
	service service
	output  *choice
	color   *choice
	jsonl   bool
	// tokenizers take the place of the one that a request names; several answer side by side. Of select
	// only.
	tokenizers []string
}

func newSelect() *cobra.Command {
	c := &callCommand{rpc: selectMemory, tables: selectTables}
	cmd := c.command(&cobra.Command{
		Use:   "select [FILE|-]",
		Short: "Select the memories of one query, and say why",
		Long: `Calls SelectMemory with a request in JSON (protojson) out of FILE, or out of
standard input, and prints the answer. With several tokenizers it calls once with
each, and prints what becomes of every memory side by side.`,
		Example: `  promptctl select request.json
  promptctl select -o table < request.json
  promptctl select -o table --tokenizer estimate,o200k_base request.json
  promptctl select --jsonl --server localhost:50051 requests.jsonl > answers.jsonl`,
	})
	cmd.Flags().StringSliceVar(&c.tokenizers, "tokenizer", nil, "tokenizers to use in place of the request's, with commas between")
	completeTokenizers(cmd)
	return cmd
}

func newPlan() *cobra.Command {
	c := &callCommand{rpc: planPrompt, tables: planTables}
	return c.command(&cobra.Command{
		Use:   "plan [FILE|-]",
		Short: "Plan one prompt out of segments and recalled memory, and say why",
		Long: `Calls PlanPrompt with a request in JSON (protojson) out of FILE, or out of
standard input, and prints the answer. A table holds the decisions and the
budgets, not the prompt itself.`,
		Example: `  promptctl plan request.json | jq -r .plan.prompt
  promptctl plan -o table < request.json
  promptctl plan --jsonl < requests.jsonl > answers.jsonl`,
	})
}

const callHelp = `

A refusal is printed on standard error, with -o json also as {"error":…} on
standard output, and ends with status 1.

With --jsonl each line is a request and is answered by a line, in the same
order; a refused one is answered by {"error":…}. The status is then 0 once the
whole input was read, however many were refused.

Without --server a server in this process answers. It trusts its caller: the
request may assert any scope and any authority. A server elsewhere permits what
its policy says of who calls: the certificate of --cert, or the token of
--token-file.`

// command completes cmd with what both commands share.
func (c *callCommand) command(cmd *cobra.Command) *cobra.Command {
	cmd.Long += callHelp
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = c.run
	c.service.flags(cmd)
	c.output = outputFlag(cmd, "json")
	c.color = colorFlag(cmd)
	cmd.Flags().BoolVar(&c.jsonl, "jsonl", false, "read a request a line, answer a line each, in order")
	return cmd
}

func (c *callCommand) run(cmd *cobra.Command, args []string) error {
	if c.jsonl && c.output.value == "table" {
		return usageError{errors.New("--jsonl answers in JSON: it cannot go with -o table")}
	}
	if c.jsonl && len(c.tokenizers) > 1 {
		return usageError{errors.New("--jsonl answers each line once: it cannot go with several tokenizers")}
	}
	api, closeAPI, err := c.service.connect(cmd)
	if err != nil {
		return err
	}
	defer closeAPI()
	in, err := openInput(cmd, args)
	if err != nil {
		return err
	}
	defer in.Close()

	if c.jsonl {
		return c.runLines(cmd.Context(), api, in, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return c.runOne(cmd.Context(), api, in, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// runOne answers the one request that is the whole input.
func (c *callCommand) runOne(ctx context.Context, api *client.Client, in *input, stdout, stderr io.Writer) error {
	data, err := in.readAll(ctx)
	if err != nil && !errors.Is(err, errTooLong) {
		return err
	}
	var req proto.Message
	if err == nil {
		req, err = c.parse(data)
	}
	if err != nil {
		return c.refuse(unreadable(err, "request"), printable(in.name+": "+err.Error())+"\n", stdout, stderr)
	}

	if len(c.tokenizers) > 1 {
		return c.runCompared(ctx, api, req.(*pb.SelectMemoryRequest), stdout, stderr)
	}
	answer, err := c.rpc.call(ctx, api, req)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		st := status.Convert(err)
		return c.refuse(st, describe(st), stdout, stderr)
	}
	if c.output.value == "table" {
		out := bufio.NewWriter(stdout)
		c.tables(out, painterFor(c.color.value, stdout), answer)
		return out.Flush()
	}
	text, err := compact(answer)
	if err != nil {
		return err
	}
	return writeIndented(stdout, text)
}

// parse reads a request, with the tokenizer that the command line names.
func (c *callCommand) parse(data []byte) (proto.Message, error) {
	req, err := c.rpc.parse(data)
	if err == nil && len(c.tokenizers) == 1 {
		req.(*pb.SelectMemoryRequest).Tokenizer = c.tokenizers[0]
	}
	return req, err
}

// refuse reports a refusal: reason on stderr for people and, with -o json, st on stdout.
func (c *callCommand) refuse(st *status.Status, reason string, stdout, stderr io.Writer) error {
	fmt.Fprint(stderr, "promptctl: ", reason)
	if c.output.value == "json" {
		text, err := refusalJSON(st)
		if err != nil {
			return err
		}
		if err := writeIndented(stdout, text); err != nil {
			return err
		}
	}
	return errReported
}
