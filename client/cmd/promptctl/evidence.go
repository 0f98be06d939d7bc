package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// evidenceReader reads the memories that hold the answer to each request: a JSON array of their ids
// a line.
type evidenceReader struct {
	lines lineReader
	read  int // lines
}

// next returns the ids for the next request.
func (r *evidenceReader) next() ([]string, error) {
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the evidence ends after %d lines, before the requests do", r.read)
	}
	r.read++
	var ids []string
	if err == nil {
		err = json.Unmarshal(line, &ids)
	}
	if err != nil {
		return nil, fmt.Errorf("evidence, line %d: %w", r.read, err)
	}
	return ids, nil
}

// end fails if there is evidence left.
func (r *evidenceReader) end() error {
	if _, err := r.lines.next(); errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("the requests end after %d lines, before the evidence does", r.read)
}

// bareList is the yardstick for a rendering: which memories would fit if the budgets of plan went
// to their texts alone, one a line, in the order of the decisions. No gate and no conflict is looked
// at: only place and room decide.
func bareList(req *pb.SelectMemoryRequest, plan *pb.MemoryContextPlan, counter tokens.Counter) []string {
	texts := map[string]string{}
	for _, hit := range req.GetRecall().GetHits() {
		texts[hit.GetMemoryId()] = hit.GetSnippet()
	}
	for _, candidate := range req.GetCandidates() {
		texts[candidate.GetMemoryId()] = candidate.GetText()
	}

	var ids []string
	var list []byte
	for _, d := range plan.GetDecisions() {
		if uint64(len(ids)) == uint64(plan.GetPolicy().GetTopK()) {
			break
		}
		longer := list
		if len(ids) > 0 {
			longer = append(longer, '\n')
		}
		longer = append(longer, texts[d.GetMemoryId()]...)
		if fits(utf8.RuneCount(longer), plan.GetPolicy().GetMaxChars()) && fits(counter.Count(longer), plan.GetPolicy().GetMaxTokens()) {
			ids = append(ids, d.GetMemoryId())
			list = longer
		}
	}
	return ids
}

func fits(n int, b *pb.Budget) bool {
	limit, limited := b.GetBound().(*pb.Budget_Limit)
	return !limited || uint64(n) <= uint64(limit.Limit)
}
