package dev_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/dev"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The harness may assert everything, the agent nothing, and both may ask for every scope.
func TestWhoMayAssertWhat(t *testing.T) {
	files := write(t, filepath.Join(t.TempDir(), "new", "folder"))
	address := serve(t, files.Access())
	harness, agent := dial(t, address, files.CA, files.Harness), dial(t, address, files.CA, files.Agent)

	asserting := request(t, files)
	wantReason(t, "the harness", selects(t, harness, asserting), "")
	wantReason(t, "the agent", selects(t, agent, asserting), "AUTHORITY_NOT_PERMITTED")
	asserting.Candidates[0].Authority = pb.Authority_AUTHORITY_WORKSPACE_OVERRIDE
	wantReason(t, "the harness with the workspace's", selects(t, harness, asserting), "")
	wantReason(t, "the agent with the workspace's", selects(t, agent, asserting), "AUTHORITY_NOT_PERMITTED")
	asserting.Candidates[0].Authority = pb.Authority_AUTHORITY_USER_DEFAULT
	for _, scope := range []string{"user:mei", "team/a"} {
		asserting.UserScope = scope
		wantReason(t, "the harness in "+scope, selects(t, harness, asserting), "")
		wantReason(t, "the agent in "+scope, selects(t, agent, asserting), "")
	}

	for number, name := range pb.SegmentKind_name {
		kind := pb.SegmentKind(number)
		if kind == pb.SegmentKind_SEGMENT_KIND_RECALLED_MEMORY { // that comes from the service
			continue
		}
		wantReason(t, "the harness with "+name, plans(t, harness, kind), "")
		wantReason(t, "the agent with "+name, plans(t, agent, kind), "REQUIRED_NOT_PERMITTED")
	}
}

// Who is called by a host name is the server, and another folder's callers are not its.
func TestFoldersDoNotMix(t *testing.T) {
	files, other := write(t, t.TempDir()), write(t, t.TempDir())
	address := serve(t, files.Access())
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	byName := dialTLS(t, net.JoinHostPort("localhost", port), client.TLSFiles{
		CA: files.CA, Certificate: files.Harness.Certificate, Key: files.Harness.Key,
	})
	wantReason(t, "by the host name", selects(t, byName, request(t, files)), "")
	wantReason(t, "the other harness", selects(t, dial(t, address, files.CA, other.Harness), request(t, files)), "IDENTITY_INVALID")
	nobody := dialTLS(t, address, client.TLSFiles{CA: files.CA})
	wantReason(t, "nobody", selects(t, nobody, request(t, files)), "IDENTITY_MISSING")
	if err := selects(t, dial(t, address, other.CA, files.Harness), request(t, files)); err == nil || err.ReasonName() != "" {
		t.Errorf("the server was taken for the other one: %v", err)
	}
}

// What is written is all in one folder and its owner's; the authority's key is not among it.
func TestWrite(t *testing.T) {
	folder := t.TempDir()
	files := write(t, folder)
	want := []string{
		"agent-key.pem", "agent.pem", "ca.pem", "grant-key.jwk", "grant-keys.jwks", "harness-key.pem", "harness.pem", "policy.yaml",
		"request.json", "server-key.pem", "server.pem",
	}
	if got := names(t, folder); !slices.Equal(got, want) {
		t.Errorf("written %q, want %q", got, want)
	}
	before := contents(t, folder)
	if again := write(t, folder); !reflect.DeepEqual(again, files) || !reflect.DeepEqual(again, dev.At(folder)) {
		t.Errorf("written again as %+v, at first as %+v", again, files)
	}
	for name, content := range contents(t, folder) {
		same := name == "policy.yaml" || name == "request.json"
		if (content == before[name]) != same {
			t.Errorf("%s written again: the same is %t, want %t", name, !same, same)
		}
	}
	if got := names(t, folder); !slices.Equal(got, want) {
		t.Errorf("written again %q, want %q", got, want)
	}
}

func TestWriteFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.Write(file); err == nil {
		t.Error("a file was taken for a folder")
	}
}

func write(t *testing.T, folder string) dev.Files {
	t.Helper()
	files, err := dev.Write(folder)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// contents returns what files hold, by their names.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, name := range names(t, folder) {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	return all
}

// serve serves on a loopback port for the length of the test.
func serve(t *testing.T, cfg server.AccessConfig) (address string) {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	access, err := server.OpenAccess(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Config{Logger: cfg.Logger, Access: access})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := access.Close(); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// dial returns a client that knows the server by its SPIFFE ID.
func dial(t *testing.T, address, ca string, who dev.Identity) *client.Client {
	t.Helper()
	return dialTLS(t, address, client.TLSFiles{CA: ca, Certificate: who.Certificate, Key: who.Key, ServerID: dev.ServerID})
}

func dialTLS(t *testing.T, address string, files client.TLSFiles) *client.Client {
	t.Helper()
	c, err := client.Dial(address, client.WithTLSFiles(files), client.WithFailFast(), client.WithAttempts(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// request returns the one that was written.
func request(t *testing.T, files dev.Files) *pb.SelectMemoryRequest {
	t.Helper()
	content, err := os.ReadFile(files.Request)
	if err != nil {
		t.Fatal(err)
	}
	r := new(pb.SelectMemoryRequest)
	if err := protojson.Unmarshal(content, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func selects(t *testing.T, c *client.Client, r *pb.SelectMemoryRequest) *client.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := c.SelectMemory(ctx, r)
	return asError(err)
}

// plans asks for a prompt that requires a segment of a kind.
func plans(t *testing.T, c *client.Client, kind pb.SegmentKind) *client.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := c.PlanPrompt(ctx, &pb.PlanPromptRequest{Segments: []*pb.PromptSegment{
		{Name: "s", Kind: kind, Required: new(true), Body: &pb.PromptSegment_Text{Text: "be brief"}},
	}})
	return asError(err)
}

func asError(err error) *client.Error {
	failed, _ := errors.AsType[*client.Error](err)
	return failed
}

// wantReason checks why the service refused a call; an empty reason means that it answered.
func wantReason(t *testing.T, who string, got *client.Error, want string) {
	t.Helper()
	switch {
	case want == "" && got != nil:
		t.Errorf("%s: %v, want an answer", who, got)
	case want != "" && (got == nil || got.ReasonName() != want):
		t.Errorf("%s: %v, want %s", who, got, want)
	}
}
