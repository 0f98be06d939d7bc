package server_test

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// canary stands in every string of a request, but for map keys, which are part of paths, and what a
// refusal names by contract.
const canary = "canary-7f3a"

// TestErrors reaches every refusal over TCP with the generated client.
func TestErrors(t *testing.T) {
	var log lockedBuffer
	_, address := listen(t, &log)
	conn := dial(t, address)
	messages := make(map[string]string) // of reasons

	type metadata = map[string]string
	for _, test := range []struct {
		name       string
		request    proto.Message
		suffix     []byte // follows the encoded request
		code       codes.Code
		reason     string
		metadata   metadata
		violations []string
	}{
		{
			name: "a fault", request: planned(func(r *pb.PlanPromptRequest) { r.Memory.Candidates[0].SourceRank = 0 }),
			code: codes.InvalidArgument, reason: "INVALID_REQUEST",
			metadata:   metadata{"violation_count": "1"},
			violations: []string{"memory.candidates[0].source_rank"},
		},
		{
			name: "faults", request: selected(func(r *pb.SelectMemoryRequest) {
				r.QueryId += "\n"
				r.ConflictKeys = map[string]string{`a"b\`: "slot"}
				r.Candidates[0].Text = " "
				r.Candidates[0].UserScope = strings.Repeat(canary, 100)
				r.Policy.MinScore = new(1.5)
			}),
			code: codes.InvalidArgument, reason: "INVALID_REQUEST",
			metadata:   metadata{"violation_count": "5"},
			violations: []string{"query_id", `conflict_keys["a\"b\\"]`, "candidates[0].text", "candidates[0].user_scope", "policy.min_score"},
		},
		{
			name: "too many elements", request: selected(nil), suffix: bytes.Repeat([]byte{0x32, 0}, 10_000),
			code: codes.InvalidArgument, reason: "INVALID_REQUEST",
			metadata:   metadata{"violation_count": "1"},
			violations: []string{"candidates"},
		},
		{
			name: "truncated", request: selected(nil), suffix: []byte{0x32},
			code: codes.InvalidArgument, reason: "INVALID_REQUEST",
		},
		{
			name: "invalid UTF-8", request: planned(nil), suffix: append([]byte{0x0a, 12, 0xff}, canary...),
			code: codes.InvalidArgument, reason: "INVALID_REQUEST",
		},
		{
			name: "unknown tokenizer", request: selected(func(r *pb.SelectMemoryRequest) { r.Tokenizer = canary }),
			code: codes.InvalidArgument, reason: "UNKNOWN_TOKENIZER", metadata: metadata{"known": tokenizerNames()},
		},
		{
			name: "unknown tokenizer of the memory", request: planned(func(r *pb.PlanPromptRequest) { r.Memory.Tokenizer = canary }),
			code: codes.InvalidArgument, reason: "UNKNOWN_TOKENIZER", metadata: metadata{"known": tokenizerNames()},
		},
		{
			name: "blank mode", request: planned(func(r *pb.PlanPromptRequest) {
				r.Segments = append(r.Segments, &pb.PromptSegment{Kind: pb.SegmentKind_SEGMENT_KIND_WORKING_MODE})
			}),
			code: codes.FailedPrecondition, reason: "REQUIRED_SEGMENT_EMPTY", metadata: metadata{"segment": "mode"},
		},
		{
			name: "blank segment", request: planned(func(r *pb.PlanPromptRequest) {
				r.Segments[0].Name, r.Segments[0].Required = "rules", new(true)
				r.Segments[0].Body = &pb.PromptSegment_Text{Text: "\t"}
			}),
			code: codes.FailedPrecondition, reason: "REQUIRED_SEGMENT_EMPTY", metadata: metadata{"segment": "rules"},
		},
		{
			name: "chars", request: planned(func(r *pb.PlanPromptRequest) { // 11 chars, 7 of the separator, 2
				r.Segments = []*pb.PromptSegment{
					{Name: "b", Required: new(true), Body: &pb.PromptSegment_Text{Text: canary}},
					{Name: "a,a", Required: new(true), Body: &pb.PromptSegment_Text{Text: "éé"}},
				}
				r.MaxChars = &pb.Budget{Bound: &pb.Budget_Limit{Limit: 19}}
				r.MaxTokens = &pb.Budget{Bound: &pb.Budget_Limit{Limit: 1}}
			}),
			code: codes.FailedPrecondition, reason: "REQUIRED_SEGMENTS_EXCEED_BUDGET",
			metadata: metadata{"needed": "20", "limit": "19", "unit": "chars", "segments": "a,a,b", "segment_count": "2"},
		},
		{
			name: "tokens", request: planned(func(r *pb.PlanPromptRequest) { // canary, -, 7f3a
				r.Segments[0].Name, r.Segments[0].Required = "rules", new(true)
				r.MaxTokens = &pb.Budget{Bound: &pb.Budget_Limit{Limit: 2}}
			}),
			code: codes.FailedPrecondition, reason: "REQUIRED_SEGMENTS_EXCEED_BUDGET",
			metadata: metadata{"needed": "3", "limit": "2", "unit": "tokens", "segments": "rules", "segment_count": "1"},
		},
		{
			name: "a message of more than 16 MiB",
			request: selected(func(r *pb.SelectMemoryRequest) {
				r.Candidates[0].Text = strings.Repeat(canary, 16<<20/len(canary))
			}),
			code: codes.ResourceExhausted,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := invoke(t.Context(), t, conn, test.request, test.suffix)
			s := status.Convert(err)
			info, violations := refusalOf(err)
			if s.Code() != test.code || info.GetReason() != test.reason {
				t.Fatalf("refused with %v, want %v %s", s.Proto(), test.code, test.reason)
			}
			var paths []string
			for _, violation := range violations {
				paths = append(paths, violation.GetField())
				if violation.GetDescription() == "" {
					t.Errorf("%s: no description", violation.GetField())
				}
			}
			if diff := cmp.Diff(test.violations, paths); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.metadata, info.GetMetadata()); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if encoded := marshal(t, s.Proto()); bytes.Contains(encoded, []byte("canary")) || len(encoded) > 4096 {
				t.Errorf("%d bytes, or the request shows in %v", len(encoded), s.Proto())
			}
			if test.reason == "" {
				if info != nil {
					t.Errorf("details %v, want none", info)
				}
				return
			}
			if info.GetDomain() != "promptassembly" {
				t.Errorf("domain %q", info.GetDomain())
			}
			if message, seen := messages[test.reason]; seen && message != s.Message() || s.Message() == "" {
				t.Errorf("message %q, elsewhere %q", s.Message(), message)
			}
			messages[test.reason] = s.Message()
		})
	}
	if text := log.String(); text != "" {
		t.Errorf("the server logged what callers did wrong:\n%s", text)
	}
}

// TestCallsThatEndEarly ends calls while a request of 10,000 candidates is on its way.
func TestCallsThatEndEarly(t *testing.T) {
	var log lockedBuffer
	_, address := listen(t, &log)
	conn := dial(t, address)
	request := selected(func(r *pb.SelectMemoryRequest) {
		r.Candidates = nil
		for i := range 10_000 - len(r.GetRecall().GetHits()) {
			r.Candidates = append(r.Candidates, candidate(strconv.Itoa(i), strings.Repeat(canary, 50)))
		}
	})
	for code, end := range map[codes.Code]func(context.Context) (context.Context, context.CancelFunc){
		codes.DeadlineExceeded: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Millisecond)
		},
		codes.Canceled: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		t.Run(code.String(), func(t *testing.T) {
			ctx, cancel := end(t.Context())
			defer cancel()
			s := status.Convert(invoke(ctx, t, conn, request, nil))
			if s.Code() != code || len(s.Details()) > 0 || strings.Contains(s.String(), "canary") {
				t.Errorf("got %v, want %v and no details", s, code)
			}
		})
	}
	if err := invoke(t.Context(), t, conn, selected(nil), nil); err != nil {
		t.Errorf("a call that is left alone: %v", err)
	}
	if text := log.String(); text != "" {
		t.Errorf("the server logged calls that ended early:\n%s", text)
	}
}

// invoke calls the method of the request's type; with a suffix, with bytes that are perhaps no such
// message.
func invoke(ctx context.Context, t *testing.T, conn *grpc.ClientConn, request proto.Message, suffix []byte) error {
	t.Helper()
	client := pb.NewPromptAssemblyServiceClient(conn)
	var err error
	method := "SelectMemory"
	switch r := request.(type) {
	case *pb.SelectMemoryRequest:
		if suffix == nil {
			_, err = client.SelectMemory(ctx, r)
			return err
		}
	case *pb.PlanPromptRequest:
		if suffix == nil {
			_, err = client.PlanPrompt(ctx, r)
			return err
		}
		method = "PlanPrompt"
	}
	_, err = callBytes(t, conn, method, append(marshal(t, request), suffix...))
	return err
}

// planned returns a valid request with a canary in every string, as edit changes it.
func planned(edit func(*pb.PlanPromptRequest)) *pb.PlanPromptRequest {
	r := new(pb.PlanPromptRequest)
	n := 0
	fill(r.ProtoReflect(), &n)
	r.Tokenizer, r.Memory.Tokenizer = "", ""
	r.Memory.Recall.Hits[0].Rank = 1
	r.Memory.Recall.Hits[0].ScoreBreakdown.Total = new(0.5)
	r.Memory.Candidates[0].SourceRank = 1
	r.Memory.Candidates[0].Score = new(0.5)
	r.Segments[0].Body = &pb.PromptSegment_Text{Text: canary}
	if edit != nil {
		edit(r)
	}
	return r
}

// selected is planned for SelectMemory.
func selected(edit func(*pb.SelectMemoryRequest)) *pb.SelectMemoryRequest {
	r := planned(nil).GetMemory()
	if edit != nil {
		edit(r)
	}
	return r
}

// fill gives each string below m a canary, with a number so that names differ, and each list one
// element.
func fill(m protoreflect.Message, n *int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		message := field.Kind() == protoreflect.MessageKind
		*n++
		text := protoreflect.ValueOfString(canary + "-" + strconv.Itoa(*n))
		switch {
		case field.IsMap():
		case field.IsList() && message:
			fill(m.Mutable(field).List().AppendMutable().Message(), n)
		case field.IsList():
			m.Mutable(field).List().Append(text)
		case message:
			fill(m.Mutable(field).Message(), n)
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, text)
		}
	}
}

// candidate returns one that is valid, of the scope "u".
func candidate(id, text string) *pb.MemoryContextCandidate {
	return &pb.MemoryContextCandidate{
		MemoryId: id, Text: text, UserScope: "u", Score: new(0.5), SourceRank: 1,
		Provenance: &pb.Provenance{SourceId: "s", SourceType: "t"},
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lockedBuffer gathers a log.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
