package memory_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/promptassembly/promptassembly/server/memory"
)

// reference decides on a request straight from the contract's numbered list, with no regard to time:
// it compares each with each and renders the whole context anew in every trial. Its decisions have
// no sentences.
func reference(req memory.Request) *memory.Plan {
	r := &referenceRun{Request: req}
	for i, c := range req.Candidates {
		r.entries = append(r.entries, &entry{
			Candidate: c,
			text:      normalized(c.Text),
			Decision: memory.Decision{
				Candidate:             i,
				Winner:                -1,
				Chars:                 utf8.RuneCountInString(r.line(c, 1)),
				NormalizedConflictKey: normalized(c.ConflictKey),
			},
		})
	}
	for _, e := range r.entries {
		switch {
		case e.Scope != req.Scope: // 1. the scope gate
			e.Reason = memory.ScopeMismatch
		case e.Score < req.Policy.MinScore: // 2. the confidence gate
			e.Reason = memory.LowConfidence
		}
	}
	slices.SortFunc(r.entries, inOrder) // 3. the order

	r.keepBest( // 4. exact dedupe
		func(a, b *entry) bool {
			return a.NormalizedConflictKey == b.NormalizedConflictKey && a.text == b.text
		},
		func(_, _ *entry) memory.Reason { return memory.DuplicateContent },
	)
	r.keepBest( // 5. conflict
		func(a, b *entry) bool {
			return a.NormalizedConflictKey == b.NormalizedConflictKey && a.NormalizedConflictKey != ""
		},
		func(loser, winner *entry) memory.Reason {
			if loser.Authority < winner.Authority {
				return memory.AuthorityLoser
			}
			return memory.ConflictLoser
		},
	)
	return r.pack() // 6.
}

type referenceRun struct {
	memory.Request
	entries []*entry
}

type entry struct {
	memory.Candidate
	memory.Decision
	text string // normalised
}

func (e *entry) live() bool { return e.Reason == 0 }

func inOrder(a, b *entry) int {
	before := func(yes bool) int {
		if yes {
			return -1
		}
		return +1
	}
	switch {
	case a.Authority != b.Authority:
		return before(a.Authority > b.Authority)
	case a.Score != b.Score:
		return before(a.Score > b.Score)
	case a.SourceRank != b.SourceRank:
		return before(a.SourceRank < b.SourceRank)
	case age(a) != age(b):
		return before(later(a, b))
	default:
		return before(a.ID < b.ID)
	}
}

// later reports whether a was captured after b.
func later(a, b *entry) bool {
	s, t := age(a), age(b)
	return s[0] > t[0] || s[0] == t[0] && s[1] > t[1]
}

// age is the seconds and nanoseconds at which e was captured.
func age(e *entry) [2]int64 {
	if at := e.Provenance.CapturedAt; at.Set {
		return [2]int64{at.Seconds, int64(at.Nanos)}
	}
	return [2]int64{math.MinInt64, 0}
}

// keepBest rejects every live entry that is not the best of those that are the same as it.
func (r *referenceRun) keepBest(same func(a, b *entry) bool, reason func(loser, winner *entry) memory.Reason) {
	type loss struct{ loser, winner *entry }
	var losses []loss
	for _, e := range r.entries {
		var best *entry
		for _, other := range r.entries {
			if e.live() && other.live() && same(e, other) && (best == nil || r.better(other, best)) {
				best = other
			}
		}
		if best != nil && best != e {
			losses = append(losses, loss{e, best})
		}
	}
	for _, l := range losses {
		l.loser.Reason, l.loser.Winner = reason(l.loser, l.winner), l.winner.Decision.Candidate
	}
}

// better reports whether a beats b, which is before it in order.
func (r *referenceRun) better(a, b *entry) bool {
	return r.Policy.Winner == memory.MostRecent && a.Authority == b.Authority && later(a, b)
}

func (r *referenceRun) pack() *memory.Plan {
	plan := new(memory.Plan)
	var chosen []*entry
	for _, e := range r.entries {
		if e.live() {
			trial := append(slices.Clone(chosen), e)
			context := r.context(trial)
			chars, tokens := utf8.RuneCountInString(context), r.Counter.Count([]byte(context))
			switch {
			case uint64(len(trial)) > uint64(r.Policy.TopK):
				e.Reason = memory.TopKReached
			case !r.Policy.MaxChars.Unlimited && uint64(chars) > uint64(r.Policy.MaxChars.Limit):
				e.Reason = memory.CharBudgetExceeded
			case !r.Policy.MaxTokens.Unlimited && uint64(tokens) > uint64(r.Policy.MaxTokens.Limit):
				e.Reason = memory.TokenBudgetExceeded
			default:
				e.Reason, e.Position, chosen = memory.Selected, len(trial), trial
				plan.Context, plan.UsedChars, plan.UsedTokens = context, chars, tokens
			}
			if e.Reason == memory.Selected || e.Reason == memory.TokenBudgetExceeded {
				e.Counted, e.Tokens = true, r.Counter.Count([]byte(r.line(e.Candidate, len(trial))+"\n"))
			}
		}
		if e.Reason == memory.Selected {
			plan.Selected = append(plan.Selected, e.ID)
		} else {
			plan.Rejected = append(plan.Rejected, e.ID)
		}
		plan.Decisions = append(plan.Decisions, e.Decision)
	}
	return plan
}

func (r *referenceRun) context(chosen []*entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<recalled_memory user_scope=\"%s\" selected=\"%d\">\n", attribute.Replace(r.Scope), len(chosen))
	for i, e := range chosen {
		b.WriteString(r.line(e.Candidate, i+1) + "\n")
	}
	b.WriteString("</recalled_memory>")
	return b.String()
}

var (
	attribute = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	authority = []string{"user_default", "workspace_override", "current_turn"}
)

func (r *referenceRun) line(c memory.Candidate, place int) string {
	var tag strings.Builder
	set := func(name, value string) { fmt.Fprintf(&tag, ` %s="%s"`, name, attribute.Replace(value)) }
	p := c.Provenance
	at := time.Unix(p.CapturedAt.Seconds, int64(p.CapturedAt.Nanos)).UTC()
	if r.Policy.Rendering == memory.Compact {
		set("n", strconv.Itoa(place))
		if p.CapturedAt.Set {
			set("captured", at.Format(time.DateOnly))
		}
		if c.Authority != memory.UserDefault {
			set("authority", authority[c.Authority])
		}
	} else {
		set("memory_id", c.ID)
		set("authority", authority[c.Authority])
		set("score", decimal(c.Score))
		set("source_rank", fmt.Sprint(c.SourceRank))
		set("source_id", p.SourceID)
		set("source_type", p.SourceType)
		if p.Title != "" {
			set("title", p.Title)
		}
		if p.CapturedAt.Set {
			set("captured_at", at.Format(time.RFC3339Nano))
		}
		if c.ConflictKey != "" {
			set("conflict_key", c.ConflictKey)
		}
	}
	return "<memory_hit" + tag.String() + ">" + characterData(c.Text) + "</memory_hit>"
}

func characterData(s string) string {
	var b strings.Builder
	previous := ' '
	for i, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case strings.HasPrefix(s[i:], "---") && strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", previous):
			b.WriteString("&#45;")
		case forbidden(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
		previous = r
	}
	return b.String()
}

// forbidden reports whether XML 1.0 has no such character.
func forbidden(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}
