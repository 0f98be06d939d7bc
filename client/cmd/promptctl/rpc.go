package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// rpc is a call of the service whose request the user writes.
type rpc struct {
	method  string
	request func() proto.Message
	answer  func() proto.Message
}

var (
	selectMemory = rpc{
		method:  pb.PromptAssemblyService_SelectMemory_FullMethodName,
		request: func() proto.Message { return new(pb.SelectMemoryRequest) },
		answer:  func() proto.Message { return new(pb.SelectMemoryResponse) },
	}
	planPrompt = rpc{
		method:  pb.PromptAssemblyService_PlanPrompt_FullMethodName,
		request: func() proto.Message { return new(pb.PlanPromptRequest) },
		answer:  func() proto.Message { return new(pb.PlanPromptResponse) },
	}
)

// parse reads a protojson request. An unknown name is an error.
func (r rpc) parse(data []byte) (proto.Message, error) {
	req := r.request()
	return req, parseJSON(data, req)
}

func (r rpc) call(ctx context.Context, conn grpc.ClientConnInterface, req proto.Message) (proto.Message, error) {
	answer := r.answer()
	return answer, conn.Invoke(ctx, r.method, req, answer)
}
