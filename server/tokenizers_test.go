package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testcounter"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// tokenizerNames are those that every server has, as a refusal lists them.
func tokenizerNames() string { return strings.Join(tokens.NewSet(server.Tokenizers()...).Names(), ",") }

// renamed is a counter of another name.
type renamed struct {
	testcounter.Pieces
	name string
}

func (r renamed) Name() string { return r.name }

func TestTokenizersAreListed(t *testing.T) {
	_, address := listenWith(t, server.Config{Tokenizers: []tokens.Counter{renamed{name: "qwen3"}, renamed{name: "A"}}})
	conn := dial(t, address)
	encoded, err := callBytes(t, conn, "ListTokenizers", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := new(pb.ListTokenizersResponse)
	if err := proto.Unmarshal(encoded, answer); err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]*pb.Tokenizer)
	var names []string
	for _, tokenizer := range answer.GetTokenizers() {
		listed[tokenizer.GetName()] = tokenizer
		names = append(names, tokenizer.GetName())
	}
	if !slices.IsSorted(names) {
		t.Errorf("names %q, want them in byte order", names)
	}
	for _, want := range []*pb.Tokenizer{
		{Name: "estimate", Version: "1", Source: "built in"},
		{Name: "o200k_base", Exact: true, Version: listed["o200k_base"].GetVersion(), Source: "tiktoken o200k_base, embedded"},
		{Name: "gpt-4o", Exact: true, Version: listed["o200k_base"].GetVersion(), Source: "tiktoken o200k_base, embedded"},
		{Name: "cl100k_base", Exact: true, Version: listed["cl100k_base"].GetVersion(), Source: "tiktoken cl100k_base, embedded"},
		{Name: "qwen3", Version: "1", Source: "a test"},
		{Name: "A", Version: "1", Source: "a test"},
	} {
		if got := listed[want.GetName()]; !proto.Equal(got, want) {
			t.Errorf("%s: %v, want %v", want.GetName(), got, want)
		}
	}
	if listed["o200k_base"].GetVersion() == "" {
		t.Error("o200k_base has no version")
	}

	request := &pb.SelectMemoryRequest{UserScope: "u", Candidates: list(candidate("m", "text")), Tokenizer: "gpt"}
	_, err = callBytes(t, conn, "SelectMemory", marshal(t, request))
	info, _ := refusalOf(err)
	if known := strings.Join(names, ","); info.GetMetadata()["known"] != known {
		t.Errorf("known %q, want %q", info.GetMetadata()["known"], known)
	}
}

// As many names as fit into a status are known.
func TestManyTokenizers(t *testing.T) {
	var many []tokens.Counter
	for i := range 1000 {
		many = append(many, renamed{name: fmt.Sprintf("a%06d", i)})
	}
	_, address := listenWith(t, server.Config{Tokenizers: many})
	request := &pb.SelectMemoryRequest{UserScope: "u", Candidates: list(candidate("m", "text")), Tokenizer: "gpt"}
	_, err := callBytes(t, dial(t, address), "SelectMemory", marshal(t, request))
	checkCode(t, err, codes.InvalidArgument)
	info, _ := refusalOf(err)
	known := strings.Split(info.GetMetadata()["known"], ",")
	if size := proto.Size(status.Convert(err).Proto()); size > 4096 || size < 4096-16 {
		t.Errorf("%d names in a status of %d bytes, want nearly 4096", len(known), size)
	}
	for i, name := range known {
		if name != fmt.Sprintf("a%06d", i) {
			t.Fatalf("name %d is %s", i, name)
		}
	}
}
