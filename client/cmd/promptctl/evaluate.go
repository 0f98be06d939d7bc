package main

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// evaluator runs a file of SelectMemoryRequests and adds up what came of them.
type evaluator struct {
	service   service
	api       *client.Client
	policy    *pb.MemorySelectionPolicy // nil: each request keeps its own
	evidence  *evidenceReader           // nil: no recall is measured
	counters  tokens.Set                // that the bare list is counted with
	tokenizer string                    // empty: each request keeps its own
	stderr    io.Writer                 // receives the refusals
}

// outcome is what came of one request.
type outcome struct {
	plan    *pb.MemoryContextPlan
	kept    keptIDs        // only where there is evidence
	refusal *status.Status // nil, or why there is no plan
	fatal   error          // ends the evaluation
}

// keptIDs are the memories that each form of a context holds.
type keptIDs struct{ full, compact, bare []string }

// evaluate reads a request a line. A refused one is reported on stderr and counted; it keeps none
// of its evidence.
func (ev *evaluator) evaluate(ctx context.Context, in io.Reader) (*report, error) {
	total := newReport(ev.evidence != nil)
	take := func(o outcome) error {
		if o.fatal != nil {
			return fmt.Errorf("line %d: %w", total.Requests+1, o.fatal)
		}
		total.add(o)
		if o.refusal != nil {
			fmt.Fprintf(ev.stderr, "promptctl: line %d: %s", total.Requests, describe(o.refusal))
		}
		if ev.evidence == nil {
			return nil
		}
		ids, err := ev.evidence.next()
		if err != nil {
			return err
		}
		total.Evidence.add(ids, o.kept)
		return nil
	}
	if err := inOrder(ctx, in, ev.outcome, take, func() error { return nil }); err != nil {
		return nil, err
	}
	if ev.evidence != nil {
		if err := ev.evidence.end(); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// outcome evaluates one line; err, if there is one, is what reading it came to.
func (ev *evaluator) outcome(ctx context.Context, line []byte, err error) outcome {
	var req proto.Message
	if err == nil {
		req, err = selectMemory.parse(line)
	}
	if err != nil {
		return outcome{refusal: unreadable(err, "line")}
	}
	o, err := ev.measure(ctx, req.(*pb.SelectMemoryRequest))
	if err == nil {
		return o
	}
	refusal, ok := status.FromError(err)
	if !ok {
		return outcome{fatal: err}
	}
	if lost := ev.service.lost(err); lost != nil {
		return outcome{fatal: lost}
	}
	return outcome{refusal: refusal}
}

// measure calls the service with req, which it may change, and where there is evidence with the
// other rendering too.
func (ev *evaluator) measure(ctx context.Context, req *pb.SelectMemoryRequest) (o outcome, err error) {
	if ev.policy != nil {
		req.Policy = ev.policy
	}
	if ev.tokenizer != "" {
		req.Tokenizer = ev.tokenizer
	}
	answer, err := ev.api.SelectMemory(ctx, req)
	if err != nil {
		return o, err
	}
	o.plan = answer.GetPlan()
	if ev.evidence == nil {
		return o, nil
	}

	counter, ok := ev.counters.Find(o.plan.GetTokenizer())
	if !ok {
		return o, fmt.Errorf("the bare list is counted in this program, which has no tokenizer %q", o.plan.GetTokenizer())
	}
	o.kept.bare = bareList(req, o.plan, counter)
	if o.kept.full, err = ev.selected(ctx, req, o.plan, pb.MemoryRendering_MEMORY_RENDERING_FULL); err != nil {
		return o, err
	}
	o.kept.compact, err = ev.selected(ctx, req, o.plan, pb.MemoryRendering_MEMORY_RENDERING_COMPACT)
	return o, err
}

// selected returns the memories that req selects under a rendering, out of plan where that has it.
// It may change the policy of req.
func (ev *evaluator) selected(
	ctx context.Context, req *pb.SelectMemoryRequest, plan *pb.MemoryContextPlan, rendering pb.MemoryRendering,
) ([]string, error) {
	if plan.GetPolicy().GetRendering() != rendering {
		req.Policy = proto.CloneOf(plan.GetPolicy())
		req.Policy.Rendering = rendering
		answer, err := ev.api.SelectMemory(ctx, req)
		if err != nil {
			return nil, err
		}
		plan = answer.GetPlan()
	}
	return plan.GetSelectedMemoryIds(), nil
}
