package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// rpc is a call of the service whose request the user writes.
type rpc struct {
	request func() proto.Message
	// call wants a message of that type.
	call func(ctx context.Context, c *client.Client, req proto.Message) (proto.Message, error)
}

var (
	selectMemory = rpc{
		request: func() proto.Message { return new(pb.SelectMemoryRequest) },
		call: func(ctx context.Context, c *client.Client, req proto.Message) (proto.Message, error) {
			return c.SelectMemory(ctx, req.(*pb.SelectMemoryRequest))
		},
	}
	planPrompt = rpc{
		request: func() proto.Message { return new(pb.PlanPromptRequest) },
		call: func(ctx context.Context, c *client.Client, req proto.Message) (proto.Message, error) {
			return c.PlanPrompt(ctx, req.(*pb.PlanPromptRequest))
		},
	}
)

// parse reads a protojson request. An unknown name is an error.
func (r rpc) parse(data []byte) (proto.Message, error) {
	req := r.request()
	return req, parseJSON(data, req)
}
