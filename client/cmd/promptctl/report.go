package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// report is what an evaluation adds up to. Its JSON is the output of `promptctl eval -o json`.
type report struct {
	Requests   int `json:"requests"`
	Refused    int `json:"refused"`
	Candidates int `json:"candidates"`
	Selected   int `json:"selected"`
	Rejected   int `json:"rejected"`
	// Reasons counts the decisions by MemoryDecisionReason, without its prefix; each one is there.
	Reasons map[string]int `json:"reasons"`
	Chars   budgetUse      `json:"charBudget"`
	Tokens  budgetUse      `json:"tokenBudget"`
	// Evidence is nil if none was given.
	Evidence *recallReport `json:"evidence,omitempty"`
}

// budgetUse is how much of a budget was used, over the answers with a limit above 0.
type budgetUse struct {
	Limited int `json:"limited"`
	// MeanUse is the mean of used/limit; nil if no answer was limited.
	MeanUse *float64 `json:"meanUse"`
	sum     float64
}

// recallReport is how much of the evidence each form of a context kept.
type recallReport struct {
	IDs      int    `json:"ids"`
	Full     recall `json:"full"`
	Compact  recall `json:"compact"`
	BareList recall `json:"bareList"`
}

// recall is the evidence found, and its share of all; nil if there is none.
type recall struct {
	Found  int      `json:"found"`
	Recall *float64 `json:"recall"`
}

const reasonPrefix = "MEMORY_DECISION_REASON_"

// reasons lists the names of all reasons in the order of the pipeline.
func reasons() []string {
	var names []string
	values := pb.MemoryDecisionReason(0).Descriptor().Values()
	for i := range values.Len() {
		if value := values.Get(i); value.Number() != 0 {
			names = append(names, strings.TrimPrefix(string(value.Name()), reasonPrefix))
		}
	}
	return names
}

func newReport(withEvidence bool) *report {
	r := &report{Reasons: map[string]int{}}
	for _, name := range reasons() {
		r.Reasons[name] = 0
	}
	if withEvidence {
		r.Evidence = &recallReport{}
	}
	return r
}

// add counts one request.
func (r *report) add(o outcome) {
	r.Requests++
	if o.refusal != nil {
		r.Refused++
		return
	}
	r.Candidates += len(o.plan.GetDecisions())
	for _, d := range o.plan.GetDecisions() {
		r.Reasons[strings.TrimPrefix(d.GetReason().String(), reasonPrefix)]++
		if d.GetStatus() == pb.MemoryDecisionStatus_MEMORY_DECISION_STATUS_SELECTED {
			r.Selected++
		} else {
			r.Rejected++
		}
	}
	r.Chars.add(o.plan.GetUsedChars(), o.plan.GetPolicy().GetMaxChars())
	r.Tokens.add(o.plan.GetUsedTokens(), o.plan.GetPolicy().GetMaxTokens())
}

func (u *budgetUse) add(used uint32, b *pb.Budget) {
	if b.GetLimit() == 0 {
		return // unlimited, or nothing may be used
	}
	u.Limited++
	u.sum += float64(used) / float64(b.GetLimit())
	u.MeanUse = new(u.sum / float64(u.Limited))
}

// add counts the evidence of one request; an id that stands there twice counts once.
func (r *recallReport) add(evidence []string, kept keptIDs) {
	evidence = slices.Compact(slices.Sorted(slices.Values(evidence)))
	r.IDs += len(evidence)
	r.Full.add(evidence, kept.full, r.IDs)
	r.Compact.add(evidence, kept.compact, r.IDs)
	r.BareList.add(evidence, kept.bare, r.IDs)
}

func (r *recall) add(evidence, kept []string, all int) {
	for _, id := range evidence {
		if slices.Contains(kept, id) {
			r.Found++
		}
	}
	if all > 0 {
		r.Recall = new(float64(r.Found) / float64(all))
	}
}

// writeTable prints r for people.
func (r *report) writeTable(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%d requests, %d refused\n%d candidates, %d selected, %d rejected\n\n",
		r.Requests, r.Refused, r.Candidates, r.Selected, r.Rejected)

	decisions := table{columns: []column{{title: "reason"}, {title: "decisions", right: true}, {title: "share", right: true}}}
	for _, name := range reasons() {
		share := "-"
		if r.Candidates > 0 {
			share = percent(float64(r.Reasons[name]) / float64(r.Candidates))
		}
		decisions.rows = append(decisions.rows, row{cells: []string{strings.ToLower(name), strconv.Itoa(r.Reasons[name]), share}})
	}
	decisions.write(out, painter{})

	budgets := table{columns: []column{{title: "budget"}, {title: "mean use", right: true}, {title: "limited answers", right: true}}}
	for _, b := range []struct {
		name string
		use  budgetUse
	}{{"chars", r.Chars}, {"tokens", r.Tokens}} {
		budgets.rows = append(budgets.rows, row{cells: []string{b.name, percentOrNone(b.use.MeanUse), strconv.Itoa(b.use.Limited)}})
	}
	fmt.Fprintln(out)
	budgets.write(out, painter{})

	if e := r.Evidence; e != nil {
		found := table{columns: []column{{title: "evidence"}, {title: "recall", right: true}, {title: "found", right: true}, {title: "of", right: true}}}
		for _, form := range []struct {
			name string
			recall
		}{{"full", e.Full}, {"compact", e.Compact}, {"bare list", e.BareList}} {
			found.rows = append(found.rows, row{cells: []string{
				form.name, percentOrNone(form.Recall), strconv.Itoa(form.Found), strconv.Itoa(e.IDs),
			}})
		}
		fmt.Fprintln(out)
		found.write(out, painter{})
	}
	return out.Flush()
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

func percentOrNone(share *float64) string {
	if share == nil {
		return "-"
	}
	return percent(*share)
}
