package server_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// All tests of this package run far from UTC, which no answer may show.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("far east", 14*60*60)
	os.Exit(m.Run())
}

func TestCapturedDayIsUTC(t *testing.T) {
	request := &pb.SelectMemoryRequest{
		UserScope:  "u",
		Candidates: []*pb.MemoryContextCandidate{candidate("m", "x")},
		Policy:     &pb.MemorySelectionPolicy{Rendering: pb.MemoryRendering_MEMORY_RENDERING_COMPACT},
	}
	request.Candidates[0].Provenance.CapturedAt = timestamppb.New(time.Date(2026, 8, 17, 23, 30, 0, 0, time.UTC))
	resp, err := pb.NewPromptAssemblyServiceClient(start(t)).SelectMemory(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	const want = "<recalled_memory user_scope=\"u\" selected=\"1\">\n" +
		"<memory_hit n=\"1\" captured=\"2026-08-17\">x</memory_hit>\n</recalled_memory>"
	if got := resp.GetPlan().GetContext(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The order of hits, candidates, segments and map entries, and of the fields themselves, never
// changes a byte of an answer, nor does the server that gives it.
func TestAnswersDoNotDependOnOrder(t *testing.T) {
	one, other := start(t), start(t)
	t.Run("SelectMemory", rapid.MakeCheck(func(r *rapid.T) {
		checkOrder(r, one, other, "SelectMemory", memoryParts(r))
	}))
	t.Run("PlanPrompt", rapid.MakeCheck(func(r *rapid.T) {
		checkOrder(r, one, other, "PlanPrompt", promptParts(r))
	}))
}

// checkOrder sends the parts of a request, which merge, in two orders.
func checkOrder(r *rapid.T, one, other *grpc.ClientConn, method string, parts []proto.Message) {
	inOrder := call(r, one, method, parts)
	permuted := call(r, other, method, rapid.Permutation(parts).Draw(r, "permuted"))
	if !bytes.Equal(inOrder, permuted) {
		r.Errorf("the answers differ:\n%x\n%x", inOrder, permuted)
	}
}

// call sends the parts of a request one after the other as one message.
func call(r *rapid.T, conn *grpc.ClientConn, method string, parts []proto.Message) []byte {
	r.Helper()
	var request, answer []byte
	for _, part := range parts {
		var err error
		if request, err = (proto.MarshalOptions{}).MarshalAppend(request, part); err != nil {
			r.Fatal(err)
		}
	}
	if err := conn.Invoke(r.Context(), servicePath+method, request, &answer, grpc.ForceCodecV2(rawCodec{})); err != nil {
		r.Fatal(err)
	}
	return answer
}

// memoryParts returns a request in parts of one candidate, hit or map entry. Its values are so few
// that they tie, repeat each other and compete.
func memoryParts(r *rapid.T) []proto.Message {
	parts := []proto.Message{&pb.SelectMemoryRequest{
		UserScope: "u",
		Recall:    &pb.RecallResult{Query: &pb.RecallQuery{UserScope: "u"}},
		Policy: &pb.MemorySelectionPolicy{
			MinScore:       new(0.25),
			TopK:           new(rapid.Uint32Range(0, 6).Draw(r, "top_k")),
			MaxChars:       &pb.Budget{Bound: &pb.Budget_Limit{Limit: rapid.Uint32Range(0, 2000).Draw(r, "max_chars")}},
			MaxTokens:      &pb.Budget{Bound: &pb.Budget_Limit{Limit: rapid.Uint32Range(0, 600).Draw(r, "max_tokens")}},
			ConflictWinner: pb.ConflictWinner(rapid.Int32Range(0, 2).Draw(r, "conflict_winner")),
			Rendering:      pb.MemoryRendering(rapid.Int32Range(0, 2).Draw(r, "rendering")),
		},
	}}
	for i := range rapid.IntRange(0, 12).Draw(r, "memories") {
		c := candidate(strconv.Itoa(i), rapid.SampledFrom([]string{"Go", " ＧＯ", "go", "Rust & <C>", "ß", "SS"}).Draw(r, "text"))
		c.UserScope = rapid.SampledFrom([]string{"u", "u", "u", "v"}).Draw(r, "scope")
		c.Score = new(rapid.SampledFrom([]float64{0.2, 0.5, 0.5, 1}).Draw(r, "score"))
		c.SourceRank = rapid.Uint32Range(1, 2).Draw(r, "rank")
		c.ConflictKey = rapid.SampledFrom([]string{"", "", "lang", "LANG ", "tool"}).Draw(r, "slot")
		c.Authority = pb.Authority(rapid.Int32Range(0, 3).Draw(r, "authority"))
		c.Provenance.CapturedAt = rapid.SampledFrom([]*timestamppb.Timestamp{nil, {Seconds: 1}, {Seconds: 1, Nanos: 1}}).Draw(r, "captured")
		if rapid.Bool().Draw(r, "candidate") {
			parts = append(parts, &pb.SelectMemoryRequest{Candidates: []*pb.MemoryContextCandidate{c}})
			continue
		}
		parts = append(parts,
			&pb.SelectMemoryRequest{Recall: &pb.RecallResult{Hits: []*pb.RecallHit{hitOf(c)}}},
			&pb.SelectMemoryRequest{ConflictKeys: map[string]string{c.GetMemoryId(): c.GetConflictKey()}},
			&pb.SelectMemoryRequest{AuthorityByMemoryId: map[string]pb.Authority{c.GetMemoryId(): c.GetAuthority()}})
	}
	return parts
}

// hitOf returns the hit that becomes the candidate, but for its slot and its authority.
func hitOf(c *pb.MemoryContextCandidate) *pb.RecallHit {
	return &pb.RecallHit{
		MemoryId: c.GetMemoryId(), Rank: c.GetSourceRank(), Snippet: c.GetText(), UserScope: c.GetUserScope(),
		Provenance: c.GetProvenance(), ScoreBreakdown: &pb.ScoreBreakdown{Total: c.Score},
	}
}

// promptParts returns a request in parts of one segment, or of one part of its memory.
func promptParts(r *rapid.T) []proto.Message {
	parts := []proto.Message{&pb.PlanPromptRequest{
		MaxChars:  &pb.Budget{Bound: &pb.Budget_Limit{Limit: rapid.Uint32Range(100, 800).Draw(r, "max_chars")}},
		MaxTokens: &pb.Budget{Bound: &pb.Budget_Limit{Limit: rapid.Uint32Range(100, 300).Draw(r, "max_tokens")}},
	}}
	for i := range rapid.IntRange(0, 6).Draw(r, "segments") {
		s := &pb.PromptSegment{
			Name: strconv.Itoa(i),
			Kind: pb.SegmentKind(rapid.SampledFrom([]int32{0, 2, 4, 6, 11}).Draw(r, "kind")),
			Body: &pb.PromptSegment_Text{Text: rapid.SampledFrom([]string{" ", "a rule", "---\n---", "<memory_hit", "long "}).Draw(r, "text")},
		}
		if rapid.Bool().Draw(r, "tie") {
			s.Priority, s.BudgetPriority = new(int32(7)), new(int32(7))
		}
		parts = append(parts, &pb.PlanPromptRequest{Segments: []*pb.PromptSegment{s}})
	}
	if rapid.Bool().Draw(r, "memory") {
		for _, part := range memoryParts(r) {
			parts = append(parts, &pb.PlanPromptRequest{Memory: part.(*pb.SelectMemoryRequest)})
		}
	}
	return parts
}
