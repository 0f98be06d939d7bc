// Package rpc answers PromptAssemblyService: it decodes, validates and converts what comes over the
// wire, runs the core, and turns its errors into statuses.
package rpc

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/text/unicode/norm"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/grants"
	"github.com/promptassembly/promptassembly/server/internal/identity"
	"github.com/promptassembly/promptassembly/server/memory"
	"github.com/promptassembly/promptassembly/server/prompt"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// MaxMessageBytes is the size of the largest request that the contract allows.
const MaxMessageBytes = 16 << 20

// Config is what a Service needs.
type Config struct {
	Log      *slog.Logger
	Counters tokens.Set
	// Cache remembers counts of Counters; nil remembers none.
	Cache *tokens.Cache
	// MessageBytes is the size of the largest request that is received, at most MaxMessageBytes.
	MessageBytes int
	// CallTimeout is how long a call may take, from its headers on.
	CallTimeout time.Duration
	// UnreadTimeout is how long a caller may take to read an answer, before it is disconnected.
	UnreadTimeout time.Duration
	Gates         Gates
	// Access says who may call; nil means that everybody may assert anything.
	Access *Access
}

// Service implements the RPCs on requests that the chain has found well-formed.
type Service struct {
	pb.UnimplementedPromptAssemblyServiceServer
	log           *slog.Logger
	counters      tokens.Set
	cache         *tokens.Cache
	messageBytes  int
	callTimeout   time.Duration
	unreadTimeout time.Duration
	gates         Gates
	access        *Access
	grants        *grants.Grants
	accounts      *accounts
	methods       map[string]bool // by full name
}

// New returns a service, for a gRPC server that is made with its Options.
func New(cfg Config) *Service {
	s := &Service{
		log:           cfg.Log,
		counters:      cfg.Counters,
		cache:         cfg.Cache,
		messageBytes:  cfg.MessageBytes,
		callTimeout:   cfg.CallTimeout,
		unreadTimeout: cfg.UnreadTimeout,
		gates:         cfg.Gates,
		access:        cfg.Access,
		grants:        grants.New(grants.Config{}), // of nobody
		accounts:      &accounts{gates: cfg.Gates, open: make(map[identity.Identity]*account)},
		methods:       make(map[string]bool),
	}
	if cfg.Access != nil {
		s.grants = cfg.Access.Grants
	}
	for _, method := range pb.PromptAssemblyService_ServiceDesc.Methods {
		s.methods["/"+pb.PromptAssemblyService_ServiceDesc.ServiceName+"/"+method.MethodName] = true
	}
	return s
}

// Options returns what a gRPC server needs for the service: the codec, the chain and its limits.
func (s *Service) Options() []grpc.ServerOption {
	unary, stream := s.chain()
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		experimental.BufferPool(buffers),
		grpc.MaxRecvMsgSize(s.messageBytes),
		grpc.InTapHandle(s.arrive),
		grpc.StatsHandler(callers{s.gates}),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errUnknownMethod }),
	}
}

// Register registers the service with a server that was made with its Options.
func (s *Service) Register(server *grpc.Server) { server.RegisterService(s.describe(), s) }

// RegisterHealth registers a health service with a server that was made with the Options.
func (s *Service) RegisterHealth(server *grpc.Server, health healthpb.HealthServer) {
	desc := healthpb.Health_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i := range desc.Methods {
		desc.Methods[i].Handler = s.guard(desc.Methods[i].Handler)
	}
	server.RegisterService(&desc, health)
}

// SelectMemory implements pb.PromptAssemblyServiceServer.
func (s *Service) SelectMemory(ctx context.Context, req *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
	counter, err := s.counter(req.GetTokenizer())
	if err != nil {
		return nil, err
	}
	plan, err := selectMemory(ctx, req, s.remembering(ctx, counter, req.GetUserScope()))
	if err != nil {
		return nil, err
	}
	return &pb.SelectMemoryResponse{Plan: plan}, nil
}

// PlanPrompt implements pb.PromptAssemblyServiceServer.
func (s *Service) PlanPrompt(ctx context.Context, req *pb.PlanPromptRequest) (*pb.PlanPromptResponse, error) {
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
		if resp.MemoryPlan, err = selectMemory(ctx, memory, s.remembering(ctx, memoryCounter, memory.GetUserScope())); err != nil {
			return nil, err
		}
	}

	in := toPromptRequest(req, resp.GetMemoryPlan(), s.remembering(ctx, counter))
	plan, err := prompt.New(ctx, in)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		return nil, refusedPlan(err)
	}
	resp.Plan = fromPromptPlan(&in, plan)
	return resp, nil
}

// ListTokenizers implements pb.PromptAssemblyServiceServer.
func (s *Service) ListTokenizers(context.Context, *pb.ListTokenizersRequest) (*pb.ListTokenizersResponse, error) {
	resp := &pb.ListTokenizersResponse{UnicodeVersion: norm.Version}
	for _, c := range s.counters {
		resp.Tokenizers = append(resp.Tokenizers, &pb.Tokenizer{
			Name: c.Name(), Exact: c.Exact(), Version: c.Version(), Source: c.Source(),
		})
	}
	return resp, nil
}

// selectMemory runs the pipeline, for as long as somebody waits for its answer.
func selectMemory(ctx context.Context, req *pb.SelectMemoryRequest, counter tokens.Counter) (*pb.MemoryContextPlan, error) {
	in := toMemoryRequest(req, counter)
	plan, err := memory.Select(ctx, in)
	if err != nil {
		return nil, ended(ctx)
	}
	return fromMemoryPlan(&in, plan), nil
}

func (s *Service) counter(name string) (tokens.Counter, error) {
	counter, ok := s.counters.Find(name)
	if !ok {
		return nil, unknownTokenizer(s.counters.Names())
	}
	return counter, nil
}
