package rpc

import (
	"context"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/server/internal/admission"
)

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
	arrival := arrivalOf(ctx)
	arrival.answer = &written{room, time.AfterFunc(s.unreadTimeout, caller.disconnect)}
	return frame{mem.NewBuffer(buffer, arrival.answer)}, nil
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
	w.end()
}

// end gives the answer's room back. More than one end is none more.
func (w *written) end() {
	w.timeout.Stop()
	w.room.Release()
}
