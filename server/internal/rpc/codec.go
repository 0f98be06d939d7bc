package rpc

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

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

// buffers holds messages as they are received and sent. Its sizes are closer to each other than
// grpc's own, which clears a buffer of 1 MiB for a message of 33 KB.
var buffers = func() mem.BufferPool {
	pool, err := mem.NewBinaryTieredBufferPool(8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
	if err != nil {
		panic(err)
	}
	return pool
}()
