// Package server builds the Prompt Assembly gRPC server, for the daemon promptd and for programs
// that want the service in their own process.
package server

import (
	"context"
	"log/slog"

	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/rpc"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// Config says how a server behaves. The zero value is usable.
type Config struct {
	// Logger receives what the server has to say, never memory text; nil means slog.Default().
	Logger *slog.Logger
}

// Server is a gRPC server with PromptAssemblyService, health and reflection registered. Every caller
// that reaches it may assert any authority, scope and required segment: it is for callers in the
// same process or on the same machine. End it with Drain or Stop; GracefulStop alone waits for
// every health watch.
type Server struct {
	*grpc.Server
	health     *health.Server
	endWatches context.CancelFunc
}

// New returns a server. The caller serves listeners with it, and stops it with Stop or Drain.
func New(cfg Config) *Server {
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	watches, endWatches := context.WithCancel(context.Background())
	s := &Server{
		Server:     grpc.NewServer(append(rpc.Options(log), grpc.ChainStreamInterceptor(during(watches)))...),
		health:     health.NewServer(),
		endWatches: endWatches,
	}
	rpc.Register(s.Server, log, tokens.NewSet(tokens.Estimate{}))
	healthpb.RegisterHealthServer(s.Server, s.health)
	s.health.SetServingStatus(pb.PromptAssemblyService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	reflection.Register(s.Server)
	return s
}

// Drain tells health checks that the server is going away, refuses new calls and lets those in flight
// end. Health watches are ended; whatever else is still open when ctx is done is cut off.
func (s *Server) Drain(ctx context.Context) {
	s.health.Shutdown()
	s.endWatches()
	defer context.AfterFunc(ctx, s.Stop)()
	s.GracefulStop()
}

// during returns an interceptor whose streams have a context that ends with ctx, too. A health watch
// lasts as long as its context, and would hold up GracefulStop.
func during(ctx context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		wrapped := middleware.WrapServerStream(stream)
		var cancel context.CancelFunc
		wrapped.WrappedContext, cancel = context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return handler(srv, wrapped)
	}
}
