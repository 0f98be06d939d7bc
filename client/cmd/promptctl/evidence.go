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
func bareList(req *pb.SelectMemoryRequest, plan *pb.MemoryContextPlan) []string {
	texts := map[string]string{}
	for _, hit := range req.GetRecall().GetHits() {
		texts[hit.GetMemoryId()] = hit.GetSnippet()
	}
	for _, candidate := range req.GetCandidates() {
		texts[candidate.GetMemoryId()] = candidate.GetText()
	}

	var ids []string
	chars, count := 0, 0
	for _, d := range plan.GetDecisions() {
		if uint64(len(ids)) == uint64(plan.GetPolicy().GetTopK()) {
			break
		}
		text := texts[d.GetMemoryId()]
		// The newline between two lines is a character, but neither a token nor part of one.
		newChars := chars + utf8.RuneCountInString(text)
		if len(ids) > 0 {
			newChars++
		}
		newCount := count + tokens.Estimate{}.Count([]byte(text))
		if fits(newChars, plan.GetPolicy().GetMaxChars()) && fits(newCount, plan.GetPolicy().GetMaxTokens()) {
			ids = append(ids, d.GetMemoryId())
			chars, count = newChars, newCount
		}
	}
	return ids
}

func fits(n int, b *pb.Budget) bool {
	limit, limited := b.GetBound().(*pb.Budget_Limit)
	return !limited || uint64(n) <= uint64(limit.Limit)
}
