package memory

import (
	"strconv"
	"strings"
)

// finish renders the context and gives every decision its sentence. The sentences are parts of one
// string, so that their number costs no allocations.
func (s *selection) finish() {
	s.finishContext()

	s.plan.Rejected = make([]string, 0, len(s.items)-len(s.plan.Selected))
	s.details, s.detailEnds = s.details[:0], resize(s.detailEnds, len(s.items))
	for i := range s.plan.Decisions {
		if s.plan.Decisions[i].Reason != Selected {
			s.plan.Rejected = append(s.plan.Rejected, s.candidate(i).ID)
		}
		s.details = s.appendDetail(s.details, i)
		s.detailEnds[i] = len(s.details)
	}

	details, start := string(s.details), 0
	for i, end := range s.detailEnds {
		s.plan.Decisions[i].Detail = details[start:end]
		start = end
	}
}

// finishContext wraps the lines of the selected memories, if there are any.
func (s *selection) finishContext() {
	if len(s.plan.Selected) == 0 {
		return
	}
	s.text = appendOpening(s.text[:0], s.Scope, len(s.plan.Selected))
	var context strings.Builder
	context.Grow(len(s.text) + len(s.lines) + len(closingTag))
	context.Write(s.text)
	context.Write(s.lines)
	context.WriteString(closingTag)
	s.plan.Context = context.String()
}

// appendDetail appends the sentence for the decision at i. Scores are written in full there, not
// rounded as in the context, for they were compared in full.
func (s *selection) appendDetail(dst []byte, i int) []byte {
	d, c := &s.plan.Decisions[i], s.candidate(i)
	switch d.Reason {
	case Selected:
		dst = append(dst, "selected at place "...)
		dst = strconv.AppendInt(dst, int64(d.Position), 10)
		dst = append(dst, " of at most "...)
		dst = strconv.AppendUint(dst, uint64(s.Policy.TopK), 10)
		dst = append(dst, ": "...)
		dst = append(dst, c.Authority.String()...)
		dst = append(dst, " with score "...)
		return appendExactScore(dst, c.Score)
	case ScopeMismatch:
		return append(dst, "the memory's scope is not the scope of the request"...)
	case LowConfidence:
		dst = append(dst, "score "...)
		dst = appendExactScore(dst, c.Score)
		dst = append(dst, " is below min_score "...)
		return appendExactScore(dst, s.Policy.MinScore)
	case DuplicateContent:
		dst = s.appendContest(dst, c, &s.Candidates[d.Winner])
		return append(dst, ", which has the same text and slot once normalised"...)
	case AuthorityLoser, ConflictLoser:
		dst = s.appendContest(dst, c, &s.Candidates[d.Winner])
		return append(dst, ", which fills the same conflict slot"...)
	case TopKReached:
		dst = append(dst, "all "...)
		dst = strconv.AppendUint(dst, uint64(s.Policy.TopK), 10)
		return append(dst, " places of top_k were taken"...)
	case CharBudgetExceeded:
		dst = append(dst, "the context would take "...)
		dst = strconv.AppendInt(dst, int64(s.needed[i]), 10)
		dst = append(dst, " chars, more than max_chars "...)
		return s.Policy.MaxChars.Append(dst)
	case TokenBudgetExceeded:
		dst = append(dst, "the context would take "...)
		dst = strconv.AppendInt(dst, int64(s.needed[i]), 10)
		dst = append(dst, " tokens, more than max_tokens "...)
		return s.Policy.MaxTokens.Append(dst)
	default:
		panic("memory: a decision without a reason")
	}
}

// appendContest says what the loser lost to and by which values.
func (s *selection) appendContest(dst []byte, loser, winner *Candidate) []byte {
	dst = append(dst, loser.Authority.String()...)
	if loser.Authority == winner.Authority {
		dst = s.appendEvidence(dst, loser)
	}
	dst = append(dst, " lost to "...)
	dst = append(dst, winner.Authority.String()...)
	if loser.Authority == winner.Authority {
		dst = s.appendEvidence(dst, winner)
	}
	dst = append(dst, " of "...)
	return append(dst, winner.ID...)
}

// appendEvidence lists the values that decide between memories of one authority, in the order in
// which the policy looks at them.
func (s *selection) appendEvidence(dst []byte, c *Candidate) []byte {
	dst = append(dst, " ("...)
	if s.Policy.Winner == MostRecent {
		dst = appendCaptured(dst, c)
		dst = append(dst, ", "...)
	}
	dst = append(dst, "score "...)
	dst = appendExactScore(dst, c.Score)
	dst = append(dst, ", source_rank "...)
	dst = strconv.AppendUint(dst, uint64(c.SourceRank), 10)
	if s.Policy.Winner != MostRecent {
		dst = append(dst, ", "...)
		dst = appendCaptured(dst, c)
	}
	return append(dst, ')')
}

func appendCaptured(dst []byte, c *Candidate) []byte {
	if !c.Provenance.CapturedAt.Set {
		return append(dst, "undated"...)
	}
	dst = append(dst, "captured_at "...)
	return appendInstant(dst, c.Provenance.CapturedAt)
}

// appendExactScore appends the shortest decimal that is exactly this score.
func appendExactScore(dst []byte, score float64) []byte {
	if float64(tenThousandths(score))/10000 == score {
		return appendScore(dst, score) // four decimals say it all
	}
	return strconv.AppendFloat(dst, score, 'g', -1, 64)
}
