package rpc

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// chain returns the interceptors, outermost first:
//
//  1. recovery; the caller gets a fixed message, the log the stack, and nobody the panic's value,
//     which may hold memory text.
//  2. validation of unary requests, so that nobody sees one that breaks a rule; of streams, who calls,
//     and bounds on how their messages arrive.
//  3. the grant, if the request carries one: what it grants is the request from here on.
//  4. authorization: whether the caller, or the grant's issuer, may assert what the request claims.
//
// Who calls, room, size, the number of elements and decoding come before any interceptor of a unary
// method, in the wrapper of each (see wrap), which recovers, too.
func (s *Service) chain() ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	recovered := recovery.WithRecoveryHandler(func(any) error { return panicked(s.log) })
	return []grpc.UnaryServerInterceptor{recovery.UnaryServerInterceptor(recovered), validateUnary, s.openGrant, s.authorize},
		[]grpc.StreamServerInterceptor{recovery.StreamServerInterceptor(recovered), s.guardStream}
}

// panicked logs where a panic happened and returns what the caller gets to know of it.
func panicked(log *slog.Logger) error {
	log.Error("panic", "stack", string(debug.Stack()))
	return errInternal
}

func validateUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if m, ok := req.(proto.Message); ok {
		if f := validate(nil, m); f.count > 0 {
			return nil, invalidRequest(f)
		}
	}
	return handler(ctx, req)
}
