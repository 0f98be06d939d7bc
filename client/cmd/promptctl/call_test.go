package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// goodRequest selects its one memory.
const goodRequest = `{"userScope":"u","candidates":[{"memoryId":"m1","text":"Prefers Go","userScope":"u",` +
	`"score":0.9,"sourceRank":1,"provenance":{"sourceId":"s","sourceType":"t"}}]}`

func TestSelectInProcess(t *testing.T) {
	const context = `"context": "<recalled_memory user_scope=\"u\" selected=\"1\">\n` +
		`<memory_hit memory_id=\"m1\" authority=\"user_default\" score=\"0.9\" source_rank=\"1\" ` +
		`source_id=\"s\" source_type=\"t\">Prefers Go</memory_hit>\n</recalled_memory>"`
	fromFile := promptctl(t, "", "select", file(t, "request.json", goodRequest))
	if fromFile.status != 0 || fromFile.stderr != "" || !strings.Contains(fromFile.stdout, context) {
		t.Errorf("got %+v, want %s", fromFile, context)
	}
	for _, args := range [][]string{{"select"}, {"select", "-"}, {"select", "-o", "json", "--timeout", "5s"}} {
		if got := promptctl(t, goodRequest, args...); got != fromFile {
			t.Errorf("%q: got %+v, want the same as from a file", args, got)
		}
	}
}

func TestPlanInProcess(t *testing.T) {
	got := promptctl(t, `{"segments":[{"kind":"SEGMENT_KIND_WORKING_MODE","text":"Mode: ask."},`+
		`{"kind":"SEGMENT_KIND_BASE_INSTRUCTIONS","text":"Be careful."}]}`, "plan")
	if want := `"prompt": "Be careful.\n\n---\n\nMode: ask."`; got.status != 0 || !strings.Contains(got.stdout, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// The white space of protojson depends on the build, so the text itself is compared.
func TestJSONIsByteStable(t *testing.T) {
	address := serve(t, func(context.Context, *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
		return &pb.SelectMemoryResponse{Plan: &pb.MemoryContextPlan{
			Context:           "<a> & \"b\": [1, 2]",
			SelectedMemoryIds: []string{"m1", "m2"},
			Policy:            &pb.MemorySelectionPolicy{TopK: new(uint32(0))},
		}}, nil
	})
	one := promptctl(t, "{}", "select", "--server", address)
	if want := `{
  "plan": {
    "context": "<a> & \"b\": [1, 2]",
    "policy": {
      "topK": 0
    },
    "selectedMemoryIds": [
      "m1",
      "m2"
    ]
  }
}
`; one.stdout != want {
		t.Errorf("got\n%s\nwant\n%s", one.stdout, want)
	}
	line := promptctl(t, "{}", "select", "--server", address, "--jsonl")
	if want := `{"plan":{"context":"<a> & \"b\": [1, 2]","policy":{"topK":0},"selectedMemoryIds":["m1","m2"]}}` + "\n"; line.stdout != want {
		t.Errorf("got\n%s\nwant\n%s", line.stdout, want)
	}
}

func TestRefusalOfTheService(t *testing.T) {
	request := strings.Replace(goodRequest, `"score":0.9`, `"score":2`, 1)
	got := promptctl(t, request, "select", "-o", "table")
	if got.status != 1 || got.stdout != "" {
		t.Errorf("status %d, stdout %q, want 1 and nothing", got.status, got.stdout)
	}
	lines := strings.Split(got.stderr, "\n")
	if want := "promptctl: INVALID_ARGUMENT (INVALID_REQUEST): " + invalidRequest; lines[0] != want {
		t.Errorf("stderr begins with %q, want %q", lines[0], want)
	}
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "  candidates[0].score: ") || lines[2] != "" {
		t.Errorf("want one violation, got %q", lines[1:])
	}

	inJSON := promptctl(t, request, "select")
	if inJSON.status != 1 || inJSON.stderr != got.stderr {
		t.Errorf("with -o json: status %d, stderr %q", inJSON.status, inJSON.stderr)
	}
	for _, want := range []string{
		"{\n  \"error\": {\n    \"code\": \"INVALID_ARGUMENT\",\n    \"message\": \"" + invalidRequest + "\",\n    \"details\": [\n",
		`"@type": "type.googleapis.com/google.rpc.ErrorInfo"`,
		`"violation_count": "1"`,
		`"@type": "type.googleapis.com/google.rpc.BadRequest"`,
		`"field": "candidates[0].score"`,
	} {
		if !strings.Contains(inJSON.stdout, want) {
			t.Errorf("stdout lacks %s:\n%s", want, inJSON.stdout)
		}
	}
}

// refuse makes a server that refuses everything.
func refuse(t *testing.T, code codes.Code, message string, info *errdetails.ErrorInfo, violations ...string) string {
	t.Helper()
	request := &errdetails.BadRequest{}
	for _, field := range violations {
		request.FieldViolations = append(request.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: field, Description: "must be set"})
	}
	st, err := status.New(code, message).WithDetails(info, request, &errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, func(context.Context, *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) { return nil, st.Err() })
}

func TestRefusalForPeople(t *testing.T) {
	address := refuse(t, codes.ResourceExhausted, "one \x1b[2Jtwo\nthree", &errdetails.ErrorInfo{
		Reason:   "OVERLOADED",
		Domain:   "promptassembly",
		Metadata: map[string]string{"violation_count": "5", "unit": "chars", "limit": "12"},
	}, "user_scope", "candidates[3].score")
	// The server asks for more time than there is, so the call is not repeated.
	got := promptctl(t, "{}", "select", "-o", "table", "--timeout", "1s", "--server", address)
	want := "promptctl: RESOURCE_EXHAUSTED (OVERLOADED): one \uFFFD[2Jtwo\uFFFDthree\n" +
		"  user_scope: must be set\n" +
		"  candidates[3].score: must be set\n" +
		"  retry after 1.5s\n" +
		"  … and 3 more\n" +
		"  limit: 12\n" +
		"  unit: chars\n"
	if got.status != 1 || got.stderr != want {
		t.Errorf("status %d, stderr\n%s\nwant 1 and\n%s", got.status, got.stderr, want)
	}
}

func TestNoSuchMessage(t *testing.T) {
	const refused = `{
  "error": {
    "code": "INVALID_ARGUMENT",
    "message": "` + invalidRequest + `",
    "details": [
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "INVALID_REQUEST",
        "domain": "promptassembly"
      }
    ]
  }
}
`
	for name, test := range map[string]struct{ text, reason string }{
		"no JSON":            {"{", "it ends within the JSON"},
		"nothing":            {"", "there is no JSON in it"},
		"a byte order mark":  {"\ufeff \n", "there is no JSON in it"},
		"an unknown name":    {`{"user_skope":"u"}`, `line 1, column 2: unknown field "user_skope"`},
		"a text as a name":   {`{"likes tea":"u"}`, "line 1, column 2: unknown field\n"},
		"a text for a score": {"{\"policy\":{\n\"minScore\":\"likes tea\"}}", "line 2, column 12: invalid value for double field minScore\n"},
		"a comma too few":    {`{"userScope":"u" "likes tea"}`, "line 1, column 18: unexpected token\n"},
		"a wrong type":       {`{"candidates":7}`, "line 1, column 15: unexpected token\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "request.json", test.text)
			got := promptctl(t, "", "select", path)
			if got.status != 1 || got.stdout != refused {
				t.Errorf("status %d, stdout\n%s\nwant 1 and\n%s", got.status, got.stdout, refused)
			}
			if !strings.HasPrefix(got.stderr, "promptctl: "+path+": ") || !strings.Contains(got.stderr, test.reason) {
				t.Errorf("stderr %q, want the file and %q", got.stderr, test.reason)
			}
		})
	}
	got := promptctl(t, "{", "select", "-o", "table")
	if got.status != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "promptctl: standard input: it ends") {
		t.Errorf("with -o table: %+v", got)
	}
}

func TestUnreachableServer(t *testing.T) {
	got := promptctl(t, goodRequest, "select", "--server", silent(t))
	if got.status != 1 || !strings.HasPrefix(got.stderr, "promptctl: UNAVAILABLE: ") || !strings.Contains(got.stdout, `"code": "UNAVAILABLE"`) {
		t.Errorf("got %+v", got)
	}
}

func TestTimeout(t *testing.T) {
	address := serve(t, func(ctx context.Context, _ *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	})
	got := promptctl(t, "{}", "select", "--server", address, "--timeout", "50ms")
	if got.status != 1 || !strings.HasPrefix(got.stderr, "promptctl: DEADLINE_EXCEEDED: ") {
		t.Errorf("got %+v", got)
	}
}

// Answers may be longer than the 4 MiB that gRPC takes by default.
func TestLongAnswer(t *testing.T) {
	text := strings.Repeat("x", 5<<20)
	address := serve(t, func(context.Context, *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
		return &pb.SelectMemoryResponse{Plan: &pb.MemoryContextPlan{Context: text}}, nil
	})
	if got := promptctl(t, "{}", "select", "--server", address); got.status != 0 || !strings.Contains(got.stdout, text) {
		t.Errorf("status %d, stderr %q, %d bytes", got.status, got.stderr, len(got.stdout))
	}
}

// A request may be as long as a server takes, which is 16 MiB.
func TestLongRequest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Config{Logger: slog.New(slog.DiscardHandler)})
	go func() { _ = srv.Serve(listener) }()
	defer srv.Stop()
	var candidates []string
	for n := range 48 {
		candidates = append(candidates, fmt.Sprintf(`{"memoryId":"m%d","text":"%d %s","userScope":"u","score":0.9,`+
			`"sourceRank":1,"provenance":{"sourceId":"s","sourceType":"t"}}`, n, n, strings.Repeat("x", 262_000)))
	}
	request := `{"userScope":"u","policy":{"topK":48,"maxChars":{"unlimited":true},"maxTokens":{"unlimited":true}},"candidates":[` +
		strings.Join(candidates, ",") + `]}`
	for _, args := range [][]string{{"select"}, {"select", "--server", listener.Addr().String()}} {
		if got := promptctl(t, request, args...); got.status != 0 || len(got.stdout) < 12<<20 {
			t.Errorf("%q: status %d, stderr %q, %d bytes", args, got.status, got.stderr, len(got.stdout))
		}
	}
}
