package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// holding is a server that asks who calls, and on which calls with a tokenizer "hold" last.
type holding struct {
	*guarded
	letGo chan struct{}
	calls sync.WaitGroup
	held  atomic.Int64 // calls, which are identified then
}

// serveHolding serves a server that has room for eight calls, four of each caller.
func serveHolding(t *testing.T, policy string) *holding {
	t.Helper()
	h := &holding{letGo: make(chan struct{})}
	h.guarded = serveAccess(t, newCA(t), policy, server.Config{
		Limits: server.Limits{InFlightBytes: 256 << 10, CallerShare: 0.5},
		Interceptors: []grpc.UnaryServerInterceptor{
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				if r, ok := req.(*pb.SelectMemoryRequest); ok && r.GetTokenizer() == "hold" {
					h.held.Add(1)
					<-h.letGo
					r.Tokenizer = ""
				}
				return next(ctx, req)
			},
		},
	})
	return h
}

// begin begins calls that last, and waits until each holds its 32 KiB.
func (h *holding) begin(t *testing.T, conn *grpc.ClientConn, calls int, with ...grpc.CallOption) {
	t.Helper()
	c := candidate("m", "")
	r := &pb.SelectMemoryRequest{UserScope: "u", Tokenizer: "hold", Candidates: list(c)}
	for proto.Size(r) < (32<<10-768)/2 { // which counts twice, beside 768 bytes for the candidate
		c.Text += strings.Repeat("x", max(1, (32<<10-768)/2-proto.Size(r)-8))
	}
	want := h.held.Load() + int64(calls)
	for range calls {
		h.calls.Go(func() {
			if _, err := pb.NewPromptAssemblyServiceClient(conn).SelectMemory(t.Context(), r, with...); err != nil {
				t.Errorf("a call that has room: %v", err)
			}
		})
	}
	eventually(t, "the calls are in flight", func() bool { return h.held.Load() == want })
	if bytes := h.value(t, "promptassembly_in_flight_bytes"); bytes != float64(want*32<<10) {
		t.Errorf("%d calls hold %.0f bytes", want, bytes)
	}
}

// finish lets all calls go.
func (h *holding) finish(t *testing.T) {
	t.Helper()
	close(h.letGo)
	h.calls.Wait()
	h.isEmpty(t)
}

// try makes a call, and checks whether there is room for it.
func try(t *testing.T, who string, conn *grpc.ClientConn, want codes.Code, with ...grpc.CallOption) {
	t.Helper()
	r := &pb.SelectMemoryRequest{UserScope: "u", Candidates: list(candidate("m", "text"))}
	_, err := pb.NewPromptAssemblyServiceClient(conn).SelectMemory(t.Context(), r, with...)
	info, _ := refusalOf(err)
	if status.Code(err) != want || (want != codes.OK) != (info.GetReason() == "OVERLOADED") {
		t.Errorf("%s: %v, want %v", who, err, want)
	}
}

// An identity has one share with all its connections, and others have their own.
func TestAccessSharesOfIdentities(t *testing.T) {
	h := serveHolding(t, `version: 1
callers:
  - name: agents
    identities: [{source: mtls, spiffe: "spiffe://example.org/agent/*"}]
    scopes: [{exact: u}]
`)
	first, second, third := h.as(t, exampleID("/agent/1")), h.as(t, exampleID("/agent/1")), h.as(t, exampleID("/agent/1"))
	other, late := h.as(t, exampleID("/agent/2")), h.as(t, exampleID("/agent/3"))
	h.begin(t, first, 2)
	try(t, "within the share", second, codes.OK)
	h.begin(t, second, 2)
	for who, conn := range map[string]*grpc.ClientConn{"the first": first, "the second": second, "a third": third} {
		try(t, who, conn, codes.ResourceExhausted)
	}
	try(t, "another identity", other, codes.OK) // of the same entry
	h.begin(t, other, 4)
	try(t, "another identity beyond its share", other, codes.ResourceExhausted)
	try(t, "a third identity, and the server is full", late, codes.ResourceExhausted)
	h.finish(t)
	for who, conn := range map[string]*grpc.ClientConn{"the first": first, "a third": third, "a third identity": late} {
		try(t, who+", later", conn, codes.OK)
	}
}

// Identities that share a connection have shares of their own, and so has one name from two issuers, or from
// two sources.
func TestAccessSharesOnOneConnection(t *testing.T) {
	one, two := newIssuer(t, "https://one.example"), newIssuer(t, "https://two.example")
	policy := fmt.Sprintf(`version: 1
issuers:
  - {issuer: https://one.example, keys: {file: %[1]q}, audiences: [prompt-assembly]}
  - {issuer: https://two.example, keys: {file: %[2]q}, audiences: [prompt-assembly]}
  - {spiffe_trust_domain: example.org, keys: {file: %[1]q}, audiences: [prompt-assembly]}
callers:
  - name: agents
    identities:
      - {source: jwt, issuer: https://one.example, subject: agent}
      - {source: jwt, issuer: https://one.example, subject: other}
      - {source: jwt, issuer: https://two.example, subject: agent}
      - {source: mtls, spiffe: spiffe://example.org/agent}
      - {source: jwt, spiffe: spiffe://example.org/agent}
    scopes: [{exact: u}]
`, one.file(), two.file())
	by := func(i *issuer, subject string) grpc.CallOption {
		return grpc.PerRPCCredentials(bearer(i.token(subject, nil)))
	}
	t.Run("one connection", func(t *testing.T) {
		h := serveHolding(t, policy)
		conn := connect(t, h.address, certified(h.ca), nil)
		h.begin(t, conn, 4, by(one, "agent"))
		try(t, "the same", conn, codes.ResourceExhausted, by(one, "agent"))
		try(t, "on another connection", connect(t, h.address, certified(h.ca), nil), codes.ResourceExhausted, by(one, "agent"))
		try(t, "another subject", conn, codes.OK, by(one, "other"))
		try(t, "another issuer", conn, codes.OK, by(two, "agent"))
		h.begin(t, conn, 4, by(two, "agent"))
		try(t, "another issuer beyond its share", conn, codes.ResourceExhausted, by(two, "agent"))
		h.finish(t)
		try(t, "later", conn, codes.OK, by(one, "agent"))
	})
	t.Run("two sources", func(t *testing.T) {
		h := serveHolding(t, policy)
		conn := h.as(t, exampleID("/agent"))
		h.begin(t, conn, 4)
		try(t, "the same", conn, codes.ResourceExhausted)
		bare := connect(t, h.address, certified(h.ca), nil)
		svid := one.token(exampleID("/agent"), map[string]any{"iss": nil})
		try(t, "a token of that name", bare, codes.OK, grpc.PerRPCCredentials(bearer(svid)))
		h.finish(t)
	})
}

// A call without an identity that holds takes nothing of anybody's share.
func TestAccessSharesOfNobody(t *testing.T) {
	h := serveHolding(t, agentMay("    scopes: [{exact: u}]\n"))
	conn, nobody := h.as(t, exampleID("/agent")), connect(t, h.address, certified(h.ca), nil)
	h.begin(t, conn, 3)
	for range 50 {
		_, err := callBytes(t, nobody, "SelectMemory", nil)
		checkCode(t, err, codes.Unauthenticated)
	}
	try(t, "the last of the share", conn, codes.OK)
	h.finish(t)
}
