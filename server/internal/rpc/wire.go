package rpc

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// describe returns the service's description with each method wrapped: the wrapper receives the
// bytes of the message, counts its elements, and decodes it only if they are within the limits. A
// few MiB of empty elements decode to gigabytes.
func describe(log *slog.Logger) *grpc.ServiceDesc {
	desc := pb.PromptAssemblyService_ServiceDesc
	desc.Methods = make([]grpc.MethodDesc, len(pb.PromptAssemblyService_ServiceDesc.Methods))
	for i, method := range pb.PromptAssemblyService_ServiceDesc.Methods {
		desc.Methods[i] = grpc.MethodDesc{MethodName: method.MethodName, Handler: wrap(method.Handler, log)}
	}
	return &desc
}

// wrap puts decode in place of the codec. It recovers as the chain does, which begins only behind
// the decoding.
func wrap(handle grpc.MethodHandler, log *slog.Logger) grpc.MethodHandler {
	return func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (resp any, err error) {
		defer func() {
			if recover() != nil {
				resp, err = nil, panicked(log)
			}
		}()
		return handle(srv, ctx, func(m any) error {
			var received frame
			defer received.free()
			if err := receive(&received); err != nil {
				return err
			}
			return decode(received.bytes(), m.(proto.Message))
		}, interceptor)
	}
}

// decode decodes b into m, or refuses it as too many elements or as no such message.
func decode(b []byte, m proto.Message) error {
	if path := tooMany(b, m); path != "" {
		f := new(faults)
		f.add(path, tooManyElements)
		return invalidRequest(f)
	}
	if err := proto.Unmarshal(b, m); err != nil {
		return undecodable()
	}
	return nil
}

// frame is a message that was received and not yet decoded.
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

// Marshal implements encoding.CodecV2. No answer holds a map, so its bytes are deterministic.
func (codec) Marshal(v any) (mem.BufferSlice, error) { return protobuf.Marshal(v) }

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return protobuf.Unmarshal(data, v)
	}
	f.free() // a second message, which grpc reports when this returns
	f.buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}
