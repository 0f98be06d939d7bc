package server_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// vector is one conformance case; proto/vectors/README.md describes the format.
type vector struct {
	Shows   string          `json:"shows"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Append  pieces          `json:"append"`
	Answer  json.RawMessage `json:"answer"`
}

// piece is raw bytes that follow the encoded request, so many times.
type piece struct {
	Base64 []byte `json:"base64"`
	Times  int    `json:"times"`
}

// pieces is one piece or a list of them.
type pieces []piece

func (p *pieces) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("[")) {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	return json.Unmarshal(text, (*[]piece)(p))
}

type vectorError struct {
	Code       string            `json:"code"`
	Reason     string            `json:"reason"`
	Violations []string          `json:"violations"`
	Metadata   map[string]string `json:"metadata"`
}

const vectorsDir = "../proto/vectors"

// TestVectors runs every hand-written case over the wire.
func TestVectors(t *testing.T) {
	conn := start(t)
	seen := 0
	err := filepath.WalkDir(vectorsDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "grants" { // no requests, but what some carry
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		seen++
		t.Run(strings.TrimPrefix(path, vectorsDir+"/"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			v := parseVector(t, text)
			if v.Shows == "" {
				t.Error("does not say what it shows")
			}
			v.run(t, conn)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != 243 {
		t.Errorf("%d vectors, want 243", seen)
	}
}

// TestRandomVectors runs the random and hostile requests over the wire.
func TestRandomVectors(t *testing.T) {
	conn := start(t)
	text, err := os.ReadFile(filepath.Join(vectorsDir, "random.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if len(lines) != 500 {
		t.Errorf("%d requests, want 500", len(lines))
	}
	for i, line := range lines {
		t.Run(strconv.Itoa(i+1), func(t *testing.T) { parseVector(t, line).run(t, conn) })
	}
}

func parseVector(t *testing.T, text []byte) vector {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var v vector
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v vector) run(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	request, response := messagesOf(t, v.Method)
	if len(v.Request) > 0 {
		if err := protojson.Unmarshal(v.Request, request); err != nil {
			t.Fatal(err)
		}
	}
	sent, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range v.Append {
		sent = append(sent, bytes.Repeat(piece.Base64, piece.Times)...)
	}
	received, err := callBytes(t, conn, v.Method, sent)

	var want struct {
		Error *vectorError `json:"error"`
	}
	if json.Unmarshal(v.Answer, &want) == nil && want.Error != nil {
		want.Error.check(t, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	expected := response.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(v.Answer, expected); err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(received, response); err != nil {
		t.Fatal(err)
	}
	if listed, ok := response.(*pb.ListTokenizersResponse); ok {
		listed.Tokenizers = alsoIn(expected.(*pb.ListTokenizersResponse).GetTokenizers(), listed.GetTokenizers(), (*pb.Tokenizer).GetName)
	}
	if diff := cmp.Diff(expected, response, protocmp.Transform(),
		protocmp.IgnoreFields(&pb.MemoryDecision{}, "detail"),
		protocmp.IgnoreFields(&pb.SegmentDecision{}, "detail"),
		protocmp.IgnoreFields(&pb.ListTokenizersResponse{}, "unicode_version"),
		protocmp.IgnoreFields(&pb.Tokenizer{}, "version", "source"),
	); diff != "" {
		t.Errorf("%s\nthe answer differs (-want +got):\n%s", v.Shows, diff)
	}
}

// check compares a refusal: of the violations as many as fit into a status are there, in order.
func (want *vectorError) check(t *testing.T, err error) {
	t.Helper()
	info, violations := refusalOf(err)
	s := status.Convert(err)
	if got := code.Code(s.Code()).String(); got != want.Code || info.GetReason() != want.Reason {
		t.Fatalf("refused with %s %q (%v), want %s %q", got, info.GetReason(), err, want.Code, want.Reason)
	}
	metadata := maps.Clone(info.GetMetadata())
	if len(want.Violations) > 0 {
		if got := metadata["violation_count"]; got != strconv.Itoa(len(want.Violations)) {
			t.Errorf("violation_count %q, want %d", got, len(want.Violations))
		}
		delete(metadata, "violation_count")
	}
	if known := want.Metadata["known"]; known != "" {
		itself := func(name string) string { return name }
		metadata["known"] = strings.Join(alsoIn(strings.Split(known, ","), strings.Split(metadata["known"], ","), itself), ",")
	}
	size := proto.Size(s.Proto())
	if rest, cut := strings.CutPrefix(want.Metadata["segments"], metadata["segments"]+","); cut {
		// Where the status was full; lengths may take a few bytes more.
		if next, _, _ := strings.Cut(rest, ","); size+len(","+next)+8 <= 4096 {
			t.Errorf("segments end before %q in %d bytes: it would fit", next, size)
		}
		metadata["segments"] = want.Metadata["segments"]
	}
	if len(metadata)+len(want.Metadata) > 0 {
		if diff := cmp.Diff(want.Metadata, metadata); diff != "" {
			t.Errorf("metadata differs (-want +got):\n%s", diff)
		}
	}

	if size > 4096 {
		t.Errorf("the status takes %d bytes, want at most 4096", size)
	}
	var paths []string
	for _, violation := range violations {
		paths = append(paths, violation.GetField())
	}
	complete := len(paths) == len(want.Violations)
	if !complete && size < 4096-512 {
		t.Errorf("%d of %d violations in %d bytes: more would fit", len(paths), len(want.Violations), size)
	}
	if !complete && len(paths) < len(want.Violations) {
		want.Violations = want.Violations[:len(paths)]
	}
	if diff := cmp.Diff(want.Violations, paths); diff != "" && len(want.Violations)+len(paths) > 0 {
		t.Errorf("violations differ (-want +got):\n%s", diff)
	}
}

// alsoIn returns what of got has the name of one in want: a server may have more tokenizers. If the names
// of got do not ascend, it returns nothing.
func alsoIn[T any](want, got []T, name func(T) string) []T {
	wanted := make(map[string]bool)
	for _, element := range want {
		wanted[name(element)] = true
	}
	var kept []T
	for i, element := range got {
		if i > 0 && name(got[i-1]) >= name(element) {
			return nil
		}
		if wanted[name(element)] {
			kept = append(kept, element)
		}
	}
	return kept
}

// messagesOf returns an empty request and an empty response of a method.
func messagesOf(t *testing.T, method string) (request, response proto.Message) {
	t.Helper()
	switch method {
	case "SelectMemory":
		return new(pb.SelectMemoryRequest), new(pb.SelectMemoryResponse)
	case "PlanPrompt":
		return new(pb.PlanPromptRequest), new(pb.PlanPromptResponse)
	case "ListTokenizers":
		return new(pb.ListTokenizersRequest), new(pb.ListTokenizersResponse)
	default:
		t.Fatalf("unknown method %q", method)
		return nil, nil
	}
}
