package rpc

import (
	"math"
	"strings"
	"unicode"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// The generators of whole requests: most values are ordinary, and some, more or less of them from
// request to request, are at an edge or past it.
var (
	selectRequests = rapid.Custom(func(t *rapid.T) *pb.SelectMemoryRequest { return generator(t).selectMemory() })
	planRequests   = rapid.Custom(func(t *rapid.T) *pb.PlanPromptRequest { return generator(t).planPrompt() })
)

// The values of fields, ordinary and odd. Nanos stay in their range: protovalidate compares instants,
// and so takes the nanos of the next second for that second.
var (
	ordinaryIDs = rapid.SampledFrom([]string{"m1", "m2", "m3", "a b", `q"\`, "é", "\u200b", "名前"})
	oddIDs      = rapid.OneOf(
		rapid.SampledFrom([]string{
			"", " ", "\u00a0\u3000", "\u3000x", "\x00", "a\n", "\x1f ", "\x7f", "\u0080", "\u0085", "\u009f",
			"a\u2028", "\u2029", "\ufffe", "\uffff", "\ufffd", "\U0001fffe",
			strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("é", 128), "x" + strings.Repeat("é", 128),
			strings.Repeat("x", 1024), strings.Repeat("x", 1025), strings.Repeat(" ", 257),
		}),
		rapid.StringOfN(rapid.RuneFrom([]rune{0, 'a', 0xFFFE, 0xFFFF}, unicode.White_Space, unicode.C), 0, 3, -1),
	)
	ordinaryTexts = rapid.SampledFrom([]string{"text", " x\n", "\u200b", "\x00"})
	oddTexts      = rapid.SampledFrom([]string{
		"", " ", "\t\r\n", "\u0085\u00a0\u1680\u2000\u2028\u3000", "\u180e",
		strings.Repeat("x", 262_144), strings.Repeat("x", 262_145),
	})
	ordinaryScores = rapid.SampledFrom([]*float64{new(0.0), new(0.5), new(1.0), new(math.SmallestNonzeroFloat64)})
	oddScores      = rapid.SampledFrom([]*float64{
		nil, new(math.Copysign(0, -1)), new(math.NaN()), new(math.Inf(+1)), new(math.Inf(-1)),
		new(math.Nextafter(1, 2)), new(-math.SmallestNonzeroFloat64), new(math.MaxFloat64),
	})
	ordinaryRanks = rapid.Uint32Min(1)
	oddRanks      = rapid.SampledFrom([]uint32{0, math.MaxUint32})
	ordinaryTimes = rapid.SampledFrom([]*timestamppb.Timestamp{nil, {}, {Seconds: 1_786_000_000, Nanos: 999_999_999}})
	oddTimes      = rapid.SampledFrom([]*timestamppb.Timestamp{
		{Seconds: -62_135_596_800},
		{Seconds: -62_135_596_801, Nanos: 999_999_999},
		{Seconds: 253_402_300_799, Nanos: 999_999_999},
		{Seconds: 253_402_300_800},
		{Seconds: math.MaxInt64, Nanos: 999_999_999},
		{Seconds: math.MinInt64},
	})
	ordinaryEnums   = rapid.Int32Range(0, 2)
	oddEnums        = rapid.SampledFrom([]int32{-1, 3, 4, 11, 12, math.MaxInt32, math.MinInt32})
	ordinaryBudgets = rapid.SampledFrom([]*pb.Budget{
		nil,
		{},
		{Bound: &pb.Budget_Limit{}},
		{Bound: &pb.Budget_Limit{Limit: math.MaxUint32}},
		{Bound: &pb.Budget_Unlimited{Unlimited: true}},
	})
	oddBudgets    = rapid.SampledFrom([]*pb.Budget{{Bound: &pb.Budget_Unlimited{}}})
	kinds         = rapid.Int32Range(0, 11)
	ordinaryTerms = rapid.SampledFrom([]int{0, 2})
	oddTerms      = rapid.SampledFrom([]int{maxMatchedTerms, maxMatchedTerms + 1})
	flags         = rapid.SampledFrom([]*bool{nil, new(true), new(true), new(false)})
)

// Where a request has a grant.
const (
	noGrant = iota
	aloneGrant
	besideGrant
)

var whereGrants = rapid.SampledFrom([]int{noGrant, noGrant, noGrant, noGrant, noGrant, noGrant, aloneGrant, besideGrant})

// request generates one request.
type request struct {
	*rapid.T
	odd int // per thousand of the values
}

func generator(t *rapid.T) request {
	return request{t, rapid.SampledFrom([]int{0, 20, 150}).Draw(t, "odd")}
}

// isOdd decides on one value.
func (r request) isOdd() bool { return rapid.IntRange(0, 999).Draw(r.T, "odd") < r.odd }

// draw returns an odd value where it is time for one.
func draw[V any](r request, name string, ordinary, odd *rapid.Generator[V]) V {
	if r.isOdd() {
		return odd.Draw(r.T, name)
	}
	return ordinary.Draw(r.T, name)
}

// several returns up to three values.
func several[V any](r request, value func() V) []V {
	values := make([]V, rapid.IntRange(0, 3).Draw(r.T, "count"))
	for i := range values {
		values[i] = value()
	}
	return values
}

func (r request) id(name string) string { return draw(r, name, ordinaryIDs, oddIDs) }

func (r request) planPrompt() *pb.PlanPromptRequest {
	m := &pb.PlanPromptRequest{
		QueryId:   r.id("query_id"),
		Segments:  several(r, r.segment),
		MaxChars:  draw(r, "max_chars", ordinaryBudgets, oddBudgets),
		MaxTokens: draw(r, "max_tokens", ordinaryBudgets, oddBudgets),
	}
	if rapid.Bool().Draw(r.T, "memory") {
		m.Memory = r.selectMemory()
	}
	switch whereGrants.Draw(r.T, "grant") {
	case aloneGrant:
		return &pb.PlanPromptRequest{QueryId: m.GetQueryId(), Grant: []byte("g")}
	case besideGrant:
		m.Grant, m.Tokenizer = []byte("g"), draw(r, "tokenizer", rapid.Just(""), ordinaryIDs)
	}
	return m
}

func (r request) segment() *pb.PromptSegment {
	m := &pb.PromptSegment{
		Name:       r.id("name"),
		Kind:       pb.SegmentKind(draw(r, "kind", ordinaryEnums, rapid.OneOf(kinds, oddEnums))),
		Provenance: draw(r, "provenance", rapid.Just(""), oddIDs),
	}
	if text := draw(r, "text", ordinaryTexts, oddTexts); text != "" {
		m.Body = &pb.PromptSegment_Text{Text: text}
	}
	if r.isOdd() {
		m.Required = flags.Draw(r.T, "required")
	}
	return m
}

func (r request) selectMemory() *pb.SelectMemoryRequest {
	m := &pb.SelectMemoryRequest{
		QueryId:    r.id("query_id"),
		UserScope:  r.id("user_scope"),
		Candidates: several(r, r.candidate),
	}
	if rapid.Bool().Draw(r.T, "recall") {
		m.Recall = r.recall()
		m.ConflictKeys = make(map[string]string)
		m.AuthorityByMemoryId = make(map[string]pb.Authority)
		for _, key := range several(r, func() string { return r.id("key") }) {
			m.ConflictKeys[key] = r.id("slot")
			m.AuthorityByMemoryId[key] = r.authority()
		}
	}
	if rapid.Bool().Draw(r.T, "policy") {
		m.Policy = &pb.MemorySelectionPolicy{
			MinScore:       draw(r, "min_score", ordinaryScores, oddScores),
			MaxChars:       draw(r, "max_chars", ordinaryBudgets, oddBudgets),
			MaxTokens:      draw(r, "max_tokens", ordinaryBudgets, oddBudgets),
			ConflictWinner: pb.ConflictWinner(draw(r, "conflict_winner", ordinaryEnums, oddEnums)),
			Rendering:      pb.MemoryRendering(draw(r, "rendering", ordinaryEnums, oddEnums)),
		}
	}
	switch whereGrants.Draw(r.T, "grant") {
	case aloneGrant:
		return &pb.SelectMemoryRequest{QueryId: m.GetQueryId(), Grant: []byte("g")}
	case besideGrant:
		m.Grant, m.Tokenizer = []byte("g"), draw(r, "tokenizer", rapid.Just(""), ordinaryIDs)
	}
	return m
}

func (r request) authority() pb.Authority {
	return pb.Authority(draw(r, "authority", ordinaryEnums, oddEnums))
}

func (r request) recall() *pb.RecallResult {
	m := &pb.RecallResult{Hits: several(r, r.hit)}
	if !r.isOdd() {
		m.Query = &pb.RecallQuery{UserScope: r.id("user_scope"), QueryId: oddIDs.Draw(r.T, "not looked at")}
	}
	return m
}

func (r request) hit() *pb.RecallHit {
	m := &pb.RecallHit{
		MemoryId:   r.id("memory_id"),
		Rank:       draw(r, "rank", ordinaryRanks, oddRanks),
		Snippet:    draw(r, "snippet", ordinaryTexts, oddTexts),
		UserScope:  r.id("user_scope"),
		Provenance: r.provenance(),
	}
	if !r.isOdd() {
		m.ScoreBreakdown = &pb.ScoreBreakdown{
			Total:        draw(r, "total", ordinaryScores, oddScores),
			Recency:      math.NaN(),
			MatchedTerms: make([]string, draw(r, "matched_terms", ordinaryTerms, oddTerms)),
		}
	}
	return m
}

func (r request) candidate() *pb.MemoryContextCandidate {
	return &pb.MemoryContextCandidate{
		MemoryId:    r.id("memory_id"),
		Text:        draw(r, "text", ordinaryTexts, oddTexts),
		UserScope:   r.id("user_scope"),
		Score:       draw(r, "score", ordinaryScores, oddScores),
		SourceRank:  draw(r, "source_rank", ordinaryRanks, oddRanks),
		Provenance:  r.provenance(),
		ConflictKey: draw(r, "conflict_key", rapid.Just(""), oddIDs),
		Authority:   r.authority(),
	}
}

func (r request) provenance() *pb.Provenance {
	if r.isOdd() {
		return nil
	}
	return &pb.Provenance{
		SourceId:   r.id("source_id"),
		SourceType: r.id("source_type"),
		Title:      r.id("title"),
		CapturedAt: draw(r, "captured_at", ordinaryTimes, oddTimes),
	}
}
