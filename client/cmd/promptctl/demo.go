package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// demoRequest is a PlanPromptRequest in protojson: what an agent's harness has in hand at the
// start of a turn.
//
//go:embed demo.json
var demoRequest []byte

// The two ceilings under which the demo plans its prompt again, in characters. Under the first some
// optional segments have no room; under the second the required ones alone have none.
const (
	tightChars = 1350
	tooFew     = 300
)

// demoCommand is `promptctl demo`.
type demoCommand struct {
	service service
	color   *choice
}

func newDemo() *cobra.Command {
	d := &demoCommand{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show on an example what is decided, and why",
		Long: `Plans the prompt of one turn of a coding agent: ten recalled memories that
contradict and repeat each other, and nine segments. It prints each decision
with its reason, the prompt, and what becomes of it when room gets short.

Without --server it starts a server on loopback that asks who calls, with
certificates made on the spot. The harness asks first; then an agent sends
the same request, and is refused for what it may not assert.`,
		Example: `  promptctl demo
  promptctl demo --color always | less -R
  promptctl demo --server localhost:50051`,
		Args: cobra.NoArgs,
		RunE: d.run,
	}
	d.service.flags(cmd)
	d.color = colorFlag(cmd)
	return cmd
}

func (d *demoCommand) run(cmd *cobra.Command, _ []string) error {
	harness, agent, end, err := d.parties(cmd)
	if err != nil {
		return err
	}
	defer end()
	var req pb.PlanPromptRequest
	if err := protojson.Unmarshal(demoRequest, &req); err != nil {
		return fmt.Errorf("demo.json: %w", err)
	}

	out := bufio.NewWriter(cmd.OutOrStdout())
	err = show(cmd.Context(), out, painterFor(d.color.value, cmd.OutOrStdout()), harness, agent, &req)
	if flushed := out.Flush(); flushed != nil {
		return flushed
	}
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	if st, ok := status.FromError(err); err != nil && ok {
		fmt.Fprint(cmd.ErrOrStderr(), "promptctl: ", describe(st))
		return errReported
	}
	return err
}

// parties returns a client of the harness, and one of the agent, which is nil where --server says whom
// to call. The caller ends them with the function returned.
func (d *demoCommand) parties(cmd *cobra.Command) (harness, agent *client.Client, end func(), err error) {
	if d.service.address != "" {
		harness, end, err = d.service.connect(cmd)
		return harness, nil, end, err
	}
	options, err := d.service.options(cmd)
	if err != nil {
		return nil, nil, nil, err
	}
	local, err := startLocal(cmd.Context(), options)
	if err != nil {
		return nil, nil, nil, err
	}
	return local.harness, local.agent, local.end, nil
}

// show plans req three times, with less and less room, and prints what came of it; and once as the
// agent, if there is one. It changes the budget of req.
func show(ctx context.Context, w io.Writer, p painter, api, agent *client.Client, req *pb.PlanPromptRequest) error {
	title := func(format string, args ...any) {
		fmt.Fprintf(w, "\n%s\n", p.paint(bold, fmt.Sprintf(format, args...)))
	}

	for _, line := range wrap(fmt.Sprintf("An agent is asked: %q. Its harness has %d recalled memories and %d segments at hand."+
		" Below: which of them reach the model, and the reason for each.",
		req.GetMemory().GetRecall().GetQuery().GetText(),
		len(req.GetMemory().GetRecall().GetHits()), len(req.GetSegments())), lineCells) {
		fmt.Fprintln(w, line)
	}
	answer, err := api.PlanPrompt(ctx, req)
	if err != nil {
		return err
	}
	title("Memories")
	memoryTable(w, p, answer.GetMemoryPlan())
	title("Segments")
	segmentTable(w, p, answer.GetPlan())
	title("The prompt")
	for line := range strings.SplitSeq(answer.GetPlan().GetPrompt(), "\n") {
		fmt.Fprintln(w, printable(line))
	}

	if agent != nil {
		title("The same from an agent that is no harness: refused, it may not say what the user said")
		_, err := agent.PlanPrompt(ctx, req)
		if err == nil {
			return errors.New("the server answered although the agent asserts what it may not")
		}
		if status.Code(err) != codes.PermissionDenied {
			return err
		}
		fmt.Fprint(w, p.paint(red, describe(status.Convert(err))))
	}

	title("The same under max_chars %d: what does not fit is dropped whole", tightChars)
	req.MaxChars = &pb.Budget{Bound: &pb.Budget_Limit{Limit: tightChars}}
	if answer, err = api.PlanPrompt(ctx, req); err != nil {
		return err
	}
	segmentTable(w, p, answer.GetPlan())

	title("The same under max_chars %d: refused, a required segment is never dropped", tooFew)
	req.MaxChars = &pb.Budget{Bound: &pb.Budget_Limit{Limit: tooFew}}
	_, err = api.PlanPrompt(ctx, req)
	if err == nil {
		return errors.New("the server answered although the required segments pass the budget")
	}
	if status.Code(err) != codes.FailedPrecondition {
		return err
	}
	fmt.Fprint(w, p.paint(red, describe(status.Convert(err))))
	return nil
}
