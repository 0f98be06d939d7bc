package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
	"github.com/promptassembly/promptassembly/server/internal/admission"
	"github.com/promptassembly/promptassembly/server/internal/grants"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/internal/observe"
)

// grantField is the field of a request that carries a grant.
const grantField = "grant"

type grantedKey struct{}

// asserting returns whose rights count: the issuer's of the grant that the request carried, or else the
// caller's. Nil means that the server trusts every caller.
func asserting(ctx context.Context) *identity.Caller {
	if issuer, ok := ctx.Value(grantedKey{}).(*identity.Caller); ok {
		return issuer
	}
	return identified(ctx)
}

// openGrant is the interceptor that puts a granted request in the place of the one that carries it. The
// request is valid.
func (s *Service) openGrant(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	var token []byte
	var queryID string
	var granted proto.Message
	switch req := req.(type) {
	case *pb.SelectMemoryRequest:
		token, queryID, granted = req.GetGrant(), req.GetQueryId(), new(pb.SelectMemoryRequest)
	case *pb.PlanPromptRequest:
		token, queryID, granted = req.GetGrant(), req.GetQueryId(), new(pb.PlanPromptRequest)
	}
	if len(token) == 0 {
		return handler(ctx, req)
	}
	issuer, err := s.open(ctx, token, queryID, granted)
	if err != nil {
		return nil, err
	}
	return handler(context.WithValue(ctx, grantedKey{}, identity.GrantIssuer(issuer)), granted)
}

// open checks the grant and decodes what it grants, for which it takes room. It returns who grants it.
func (s *Service) open(ctx context.Context, token []byte, queryID string, into proto.Message) (issuer string, err error) {
	// The token as it was decoded, its payload, and what is signed of it.
	held := &heldGrant{arrival: arrivalOf(ctx), bytes: 4 * int64(len(token))}
	if !held.take(held.bytes) {
		return "", overloaded(ctx)
	}
	relay := identified(ctx)
	_, plan := into.(*pb.PlanPromptRequest)
	issuer, contents, err := s.grants.Verify(ctx, grants.Carried{
		Token: token, Plan: plan, QueryID: queryID,
		MayAsk:     func(issuer string) bool { return policyOf(ctx).Rights(relay).Relays(issuer) },
		BeforeWait: held.wait,
	})
	call := observe.From(ctx)
	if contents != nil {
		call.Granted(issuer, contents.Digest)
	}
	invalid, ok := errors.AsType[*grant.InvalidError](err)
	switch {
	case !held.resume():
		return "", overloaded(ctx)
	case ok:
		return "", grantRefused(ctx, invalid.Check)
	case ctx.Err() != nil:
		return "", ended(ctx)
	case err != nil:
		return "", errInternal
	}

	e := count(contents.Request, into)
	if path := e.tooMany(); path != "" {
		f := new(faults)
		f.add(grantField+"."+path, tooManyElements)
		return "", invalidRequest(f)
	}
	if !held.take(2*int64(len(token)) + e.bytes(len(contents.Request))) { // what is signed is not needed any more
		return "", overloaded(ctx)
	}
	if err := unmarshal(contents.Request, into, &e); err != nil {
		return "", grantRefused(ctx, grant.Payload)
	}
	asserted := assertedBy(into)
	noteIdentifiers(call, queryID, asserted.Scope)
	if f := validate(&path{name: grantField}, into); f.count > 0 {
		return "", invalidRequest(f)
	}
	if !policyOf(ctx).Rights(relay).MayRelay(issuer, asserted) {
		return "", relayRefused(ctx, relay, asserted.Scope)
	}
	return issuer, nil
}

// heldGrant is the room of a call that carries a grant. While it waits for keys it makes no work, and gives
// back its room among those that do: it counts as a request that arrives slowly, until the wait is over.
type heldGrant struct {
	arrival *arrival
	bytes   int64
	waiting admission.Ticket
	waited  bool
	full    bool // there was no room to wait, or none to go on
}

func (h *heldGrant) take(n int64) bool { return h.arrival.room.Resize(n) }

// wait reports whether there is room to wait.
func (h *heldGrant) wait() bool {
	var admitted bool
	if h.waiting, admitted = h.arrival.arriving.Admit(h.bytes); !admitted {
		h.full = true
		return false
	}
	h.waited = true
	h.arrival.room.Release()
	return true
}

// resume reports whether there was room to wait, and is room to go on.
func (h *heldGrant) resume() bool {
	h.waiting.Release()
	if h.waited && !h.take(h.bytes) {
		h.full = true
	}
	return !h.full
}
