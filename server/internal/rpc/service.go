// Package rpc answers PromptAssemblyService: it decodes, validates and converts what comes over the
// wire, runs the core, and turns its errors into statuses.
package rpc

import (
	"context"
	"log/slog"

	"golang.org/x/text/unicode/norm"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/prompt"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// MaxMessageBytes is the size of the largest request that is received.
const MaxMessageBytes = 16 << 20

// service implements the RPCs on requests that the chain has found well-formed.
type service struct {
	pb.UnimplementedPromptAssemblyServiceServer
	counters tokens.Set
}

// The most streams of one connection and the most bytes of their headers. grpc has no limit on the
// former, and a client that does not read its answers holds each of them in memory.
const (
	maxStreams     = 128
	maxHeaderBytes = 64 << 10
)

// Options returns what a gRPC server needs for Register: the codec, the chain and the limits.
func Options(log *slog.Logger) []grpc.ServerOption {
	unary, stream := chain(log)
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
	}
}

// Register registers the service with a server that was made with Options.
func Register(s *grpc.Server, log *slog.Logger, counters tokens.Set) {
	s.RegisterService(describe(log), &service{counters: counters})
}

// SelectMemory implements pb.PromptAssemblyServiceServer.
func (s *service) SelectMemory(ctx context.Context, req *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
	counter, err := s.counter(req.GetTokenizer())
	if err != nil {
		return nil, err
	}
	plan, err := selectMemory(ctx, req, counter)
	if err != nil {
		return nil, err
	}
	return &pb.SelectMemoryResponse{Plan: plan}, nil
}

// PlanPrompt implements pb.PromptAssemblyServiceServer.
func (s *service) PlanPrompt(ctx context.Context, req *pb.PlanPromptRequest) (*pb.PlanPromptResponse, error) {
	counter, err := s.counter(req.GetTokenizer())
	if err != nil {
		return nil, err
	}
	resp := new(pb.PlanPromptResponse)
	if memory := req.GetMemory(); memory != nil {
		memoryCounter := counter
		if memory.GetTokenizer() != "" {
			if memoryCounter, err = s.counter(memory.GetTokenizer()); err != nil {
				return nil, err
			}
		}
		if resp.MemoryPlan, err = selectMemory(ctx, memory, memoryCounter); err != nil {
			return nil, err
		}
	}

	in := toPromptRequest(req, resp.GetMemoryPlan(), counter)
	plan, err := prompt.New(in)
	if err != nil {
		return nil, refusedPlan(err)
	}
	resp.Plan = fromPromptPlan(&in, plan)
	return resp, nil
}

// ListTokenizers implements pb.PromptAssemblyServiceServer.
func (s *service) ListTokenizers(context.Context, *pb.ListTokenizersRequest) (*pb.ListTokenizersResponse, error) {
	resp := &pb.ListTokenizersResponse{UnicodeVersion: norm.Version}
	for _, c := range s.counters {
		resp.Tokenizers = append(resp.Tokenizers, &pb.Tokenizer{Name: c.Name(), Exact: c.Exact(), Version: c.Version()})
	}
	return resp, nil
}

// selectMemory runs the pipeline, for as long as somebody waits for its answer.
func selectMemory(ctx context.Context, req *pb.SelectMemoryRequest, counter tokens.Counter) (*pb.MemoryContextPlan, error) {
	in := toMemoryRequest(req, counter)
	plan, err := memory.Select(ctx, in)
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return fromMemoryPlan(&in, plan), nil
}

func (s *service) counter(name string) (tokens.Counter, error) {
	counter, ok := s.counters.Find(name)
	if !ok {
		return nil, unknownTokenizer(s.counters.Names())
	}
	return counter, nil
}
