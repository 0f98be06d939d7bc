package rpc

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/admission"
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

// wrap returns the handler with what comes before and after every interceptor: room for the call,
// the number of elements, decoding, and room for the answer. It recovers as the chain does, which
// begins only behind the decoding.
func (s *Service) wrap(handle grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (resp any, err error) {
		defer func() {
			if recover() != nil {
				resp, err = nil, panicked(s.log)
			}
		}()
		if compressed(ctx) {
			return nil, errCompressed
		}
		arrival := arrivalOf(ctx)
		if !arrival.begin() {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		defer arrival.room.Release()
		if arrival.full {
			return nil, overloaded(ctx)
		}

		resp, err = handle(srv, ctx, func(m any) error {
			var received frame
			defer received.free()
			if err := arrival.receive(func() error { return receive(&received) }); err != nil {
				return err
			}
			return arrival.decode(ctx, received.bytes(), m.(proto.Message))
		}, interceptor)
		if err != nil {
			return nil, err
		}
		noteDecisions(observe.From(ctx), resp)
		return s.answer(ctx, resp.(proto.Message))
	}
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

// noteRequest tells the observer the identifiers of a request that are valid.
func noteRequest(call *observe.Call, m proto.Message) {
	var queryID, scope string
	switch m := m.(type) {
	case *pb.SelectMemoryRequest:
		queryID, scope = m.GetQueryId(), m.GetUserScope()
	case *pb.PlanPromptRequest:
		queryID, scope = m.GetQueryId(), m.GetMemory().GetUserScope()
	}
	if optionalIdentifier(queryID) != "" {
		queryID = ""
	}
	if optionalIdentifier(scope) != "" {
		scope = ""
	}
	call.Request(queryID, scope)
}

// noteDecisions tells the observer what was decided.
func noteDecisions(call *observe.Call, resp any) {
	switch resp := resp.(type) {
	case *pb.SelectMemoryResponse:
		call.Memory(resp.GetPlan())
	case *pb.PlanPromptResponse:
		call.Memory(resp.GetMemoryPlan())
		call.Prompt(resp.GetPlan())
	}
}

// buffers holds messages as they are received and sent. Its sizes are closer to each other than
// grpc's own, which clears a buffer of 1 MiB for a message of 33 KB.
var buffers = func() mem.BufferPool {
	pool, err := mem.NewBinaryTieredBufferPool(8, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
	if err != nil {
		panic(err)
	}
	return pool
}()

// answer returns the encoded answer, for which there must be room until it is written: it is held
// for as long as the client does not read it. A client that does not do so in time is disconnected. No
// answer holds a map, so its bytes are deterministic.
func (s *Service) answer(ctx context.Context, m proto.Message) (any, error) {
	size := proto.Size(m)
	caller := callerOf(ctx)
	room, ok := caller.answers.Admit(int64(size))
	if !ok {
		return nil, overloaded(ctx)
	}
	buffer := buffers.Get(size)
	encoded, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], m)
	if err != nil {
		room.Release()
		return nil, errInternal
	}
	*buffer = encoded
	if mem.IsBelowBufferPoolingThreshold(cap(encoded)) { // then grpc does not tell when it is written
		room.Release()
		return frame{mem.SliceBuffer(encoded)}, nil
	}
	return frame{mem.NewBuffer(buffer, &written{room, time.AfterFunc(s.unreadTimeout, caller.disconnect)})}, nil
}

// written is a pool that the buffer of one answer goes back to when the answer was written, or its
// stream is gone.
type written struct {
	room    admission.Ticket
	timeout *time.Timer
}

// Get implements mem.BufferPool.
func (*written) Get(n int) *[]byte { return buffers.Get(n) }

// Put implements mem.BufferPool.
func (w *written) Put(buffer *[]byte) {
	buffers.Put(buffer)
	w.timeout.Stop()
	w.room.Release()
}

// frame is an encoded message: one that was received and not yet decoded, or one to send.
type frame struct{ buffer mem.Buffer }

func (f *frame) bytes() []byte { return f.buffer.ReadOnlyData() }

func (f *frame) free() {
	if f.buffer != nil {
		f.buffer.Free()
	}
}

// codec is gRPC's own protobuf codec, but for frames. The wrapped methods decode those themselves,
// as grpc answers INTERNAL by itself when a codec fails.
type codec struct{}

var protobuf = encoding.GetCodecV2(grpcproto.Name)

// Name implements encoding.CodecV2.
func (codec) Name() string { return grpcproto.Name }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(frame); ok {
		return mem.BufferSlice{f.buffer}, nil
	}
	return protobuf.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return protobuf.Unmarshal(data, v)
	}
	f.free() // a second message, which grpc reports when this returns
	f.buffer = data.MaterializeToBuffer(buffers)
	return nil
}

// errCompressed refuses messages that are compressed: 16 KiB can hold 16 MiB.
var errCompressed = status.Error(codes.Unimplemented, "compressed messages are not accepted")
