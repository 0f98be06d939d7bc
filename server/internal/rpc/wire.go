package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/observe"
)

// describe returns the service's description with each method wrapped.
func (s *Service) describe() *grpc.ServiceDesc {
	desc := pb.PromptAssemblyService_ServiceDesc
	desc.Methods = make([]grpc.MethodDesc, len(pb.PromptAssemblyService_ServiceDesc.Methods))
	for i, method := range pb.PromptAssemblyService_ServiceDesc.Methods {
		desc.Methods[i] = grpc.MethodDesc{MethodName: method.MethodName, Handler: s.wrap(method.Handler)}
	}
	return &desc
}

// wrap returns the handler with what comes before and after every interceptor: who calls, room for the
// call, the number of elements, decoding, and room for the answer.
func (s *Service) wrap(handle grpc.MethodHandler) grpc.MethodHandler {
	return s.guard(func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		arrival := arrivalOf(ctx)
		if arrival.begin != nil && !arrival.begin() {
			return nil, ended(ctx)
		}
		if caller := identified(ctx); caller != nil {
			defer s.accounts.leave(caller.Identity)
			arrival.full = !arrival.belong(s.accounts.enter(caller.Identity)) || arrival.full
		}
		defer arrival.room.Release()
		if arrival.full {
			return nil, overloaded(ctx)
		}

		resp, err := handle(srv, ctx, func(m any) error {
			var received frame
			defer received.free()
			if err := receive(&received); err != nil {
				return err
			}
			return arrival.decode(ctx, received.bytes(), m.(proto.Message))
		}, interceptor)
		if err != nil {
			return nil, err
		}
		noteDecisions(observe.From(ctx), resp)
		return s.answer(ctx, resp.(proto.Message))
	})
}

// guard returns the handler with who calls, and bounds on how its request arrives. It recovers as the
// chain does, which begins only behind the decoding.
func (s *Service) guard(handle grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (resp any, err error) {
		defer func() {
			if recover() != nil {
				resp, err = nil, panicked(s.log)
			}
		}()
		if ctx, err = s.identify(ctx); err != nil {
			return nil, err
		}
		if compressed(ctx) {
			return nil, errCompressed
		}
		return handle(srv, ctx, func(m any) error {
			return receiveSmall(ctx, m, func() error { return receive(m) })
		}, interceptor)
	}
}

// guardStream does for streams what guard does.
func (s *Service) guardStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := s.identify(stream.Context())
	if err != nil {
		return err
	}
	if compressed(ctx) {
		return errCompressed
	}
	return handler(srv, guardedStream{stream, ctx})
}

type guardedStream struct {
	grpc.ServerStream
	ctx context.Context // says who calls
}

// Context implements grpc.ServerStream.
func (s guardedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s guardedStream) RecvMsg(m any) error {
	return receiveSmall(s.ctx, m, func() error { return s.ServerStream.RecvMsg(m) })
}

// maxOtherBytes is the size of the largest message for another service than this one: they hold names,
// which health and reflection keep or send back.
const maxOtherBytes = 4 << 10

// receiveSmall receives a message, and refuses one that is decoded already and too large.
func receiveSmall(ctx context.Context, m any, receive func() error) error {
	if err := arrivalOf(ctx).receive(ctx, receive); err != nil {
		return err
	}
	if m, ok := m.(proto.Message); ok && proto.Size(m) > maxOtherBytes {
		return errTooLarge
	}
	return nil
}

// compressed reports whether the request is.
func compressed(ctx context.Context) bool {
	encoding := observe.From(ctx).Compression()
	return encoding != "" && encoding != "identity"
}

// decode decodes b into m if there is room for it, and refuses it as too many elements or as no
// such message.
func (a *arrival) decode(ctx context.Context, b []byte, m proto.Message) error {
	e := count(b, m)
	if path := e.tooMany(); path != "" {
		f := new(faults)
		f.add(path, tooManyElements)
		return invalidRequest(f)
	}
	size := e.bytes(len(b))
	a.caller.learn(size)
	if !a.room.Resize(size) {
		return overloaded(ctx)
	}
	if err := unmarshal(b, m, &e); err != nil {
		return undecodable()
	}
	noteRequest(observe.From(ctx), m)
	return nil
}
