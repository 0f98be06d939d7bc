package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/grant"
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
	arrival := arrivalOf(ctx)
	// The token as it was received and decoded, its payload, and what is signed of it.
	taken := 4 * int64(len(token))
	if !arrival.room.Resize(taken) {
		return "", overloaded(ctx)
	}
	_, plan := into.(*pb.PlanPromptRequest)
	issuer, contents, err := s.grants.Verify(ctx, token, plan, queryID)
	invalid, ok := errors.AsType[*grant.InvalidError](err)
	switch {
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
	if !arrival.room.Resize(taken + e.bytes(len(contents.Request))) {
		return "", overloaded(ctx)
	}
	if err := unmarshal(contents.Request, into, &e); err != nil {
		return "", grantRefused(ctx, grant.Payload)
	}
	asserted := assertedBy(into)
	call := observe.From(ctx)
	call.Granted(issuer, contents.Digest)
	noteIdentifiers(call, queryID, asserted.Scope)
	if f := validate(&path{name: grantField}, into); f.count > 0 {
		return "", invalidRequest(f)
	}
	if relay := identified(ctx); !s.access.Policy().Rights(relay).MayRelay(issuer, asserted) {
		return "", relayRefused(ctx, relay, asserted.Scope)
	}
	return issuer, nil
}
