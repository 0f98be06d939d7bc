package memory

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/promptassembly/promptassembly/server/tokens"
)

// Request asks which candidates enter the prompt of one query. Select trusts it: that scopes, ids,
// texts, scores and ranks are as the contract's rules demand is for the caller to see to, as the
// service does.
type Request struct {
	// Scope is the query's; only candidates of the same scope, byte for byte, can be selected.
	Scope string
	// Candidates in any order, their ids unique. Select does not change them.
	Candidates []Candidate
	Policy     Policy
	// Counter counts the tokens for Policy.MaxTokens.
	Counter tokens.Counter
}

// Select decides on every candidate and renders those it selects. It fails, with ctx.Err(), only if
// ctx ends first: the longest texts there may be can take seconds to compare.
func Select(ctx context.Context, req Request) (*Plan, error) {
	s := newSelection(ctx, req)
	defer s.release()

	s.gateScope()
	s.gateConfidence()
	s.measure()
	s.order()
	s.dedupe()
	s.resolveConflicts()
	s.pack()

	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.finish()
	return s.plan, nil
}

// selection is one run of the pipeline: its plan, and scratch memory that outlives the run.
type selection struct {
	Request
	ctx  context.Context // once it has ended, what is left of the run does not matter
	plan *Plan
	*scratch
	// seed differs from run to run, so that nobody can send texts whose hashes collide. It shows in
	// no output: what hashes alike is compared.
	seed maphash.Seed
}

// scratch is memory that one run leaves to the next, so that the number of allocations does not
// grow with the number of candidates. Nothing in it is read before it is written.
type scratch struct {
	items      []item
	keys       []uint64 // evidence and index of each candidate
	slotKeys   []byte   // normalised conflict keys that differ from what was sent
	slotEnds   []int
	needed     []int  // what the context would have taken with the memory that did not fit
	details    []byte // all detail sentences
	detailEnds []int
	text       []byte // one normalised text, or the opening tag
	other      []byte // another one, to compare with
	lines      []byte // the context's lines
	slots      groups
	signatures groups
	members    []int32 // of each group of signatures
	contents   groups
	winners    []int32
	normalizer normalizer
}

// item is what is known of the candidate at the same index before there is a decision on it.
type item struct {
	signature uint64 // the hash of its text's signature
	chars     uint32 // of its line as the only one
	reason    Reason // of the gate that rejected it
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func newSelection(ctx context.Context, req Request) *selection {
	s := &selection{Request: req, ctx: ctx, plan: new(Plan), scratch: scratches.Get().(*scratch), seed: maphash.MakeSeed()}
	s.items = resize(s.items, len(req.Candidates))
	clear(s.items)
	return s
}

func (s *selection) release() { scratches.Put(s.scratch) }

// resize returns a slice of length n that reuses s where it can; its content is undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// candidate returns the one that the decision at i is on.
func (s *selection) candidate(i int) *Candidate {
	return &s.Candidates[s.plan.Decisions[i].Candidate]
}
