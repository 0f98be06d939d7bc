// Package server builds the Prompt Assembly gRPC server, for the daemon promptd and for programs
// that want the service in their own process.
package server

import (
	"context"
	"log/slog"
	"time"

	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/admission"
	"github.com/promptassembly/promptassembly/server/internal/rpc"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// Config says how a server behaves. The zero value is usable.
type Config struct {
	// Logger receives what the server has to say, never memory text; nil means slog.Default().
	Logger *slog.Logger
	// CallLog says what of each call Logger receives. The zero value logs none.
	CallLog CallLog
	// Metrics is where the server registers its metrics; nil means nowhere. One registerer can serve
	// one server.
	Metrics prometheus.Registerer
	// Tracing makes a span for each call; nil means none.
	Tracing trace.TracerProvider
	// Limits bounds what callers may take.
	Limits Limits
	// Tokenizers are token counters beside those that every server has; no two have one name.
	Tokenizers []tokens.Counter
	// Access says who may call and what callers may assert, and secures connections. Nil means plaintext,
	// and that every caller may assert any authority, scope and required segment: that is for callers in
	// the same process.
	Access *Access
	// Interceptors see the unary calls that were found valid, in this order. What they answer in place
	// of the service must be of the method's type.
	Interceptors []grpc.UnaryServerInterceptor
}

// Server is a gRPC server of PromptAssemblyService, health and reflection. It is safe for concurrent
// use.
type Server struct {
	grpc        *grpc.Server
	health      *health.Server
	endWatches  context.CancelFunc
	connections int
	strangers   bool // connections are those of strangers until somebody was identified on them
}

// New returns a server. The caller serves listeners with it, and stops it with Stop or Drain. It
// panics if its metrics are registered already.
func New(cfg Config) *Server {
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	limits := cfg.Limits.withDefaults()
	if cfg.Access != nil {
		limits = cfg.Access.bound(limits)
	}
	gates := rpc.Gates{
		InFlight: admission.NewGate(limits.InFlightBytes, limits.CallerShare),
		Arriving: admission.NewHoldGate(limits.BufferedBytes, limits.CallerShare, spareRequestBytes),
		Answers:  admission.NewHoldGate(limits.BufferedBytes, limits.CallerShare, spareAnswerBytes),
	}
	if cfg.Metrics != nil {
		gauges(cfg.Metrics, "in_flight", "calls that wait for their turn and are answered", gates.InFlight)
		gauges(cfg.Metrics, "arriving", "requests that take long to arrive", gates.Arriving)
		gauges(cfg.Metrics, "answers", "answers that their callers have not read", gates.Answers)
	}
	counters := tokens.NewSet(append(Tokenizers(), cfg.Tokenizers...)...)
	cache := tokens.NewCache(limits.TokenCacheBytes, counters)
	if cfg.Metrics != nil {
		countCache(cfg.Metrics, cache, counters)
	}
	service := rpc.New(rpc.Config{
		Log:           log,
		Counters:      counters,
		Cache:         cache,
		MessageBytes:  limits.MessageBytes,
		CallTimeout:   limits.CallTimeout,
		UnreadTimeout: limits.UnreadTimeout,
		Gates:         gates,
		Access:        cfg.Access.forCalls(),
	})
	observer := cfg.observer(log)
	watches, endWatches := context.WithCancel(context.Background())

	options := append(cfg.observation(observer), limits.options()...)
	options = append(options, service.Options()...)
	options = append(options, grpc.ChainStreamInterceptor(during(watches)), grpc.ChainUnaryInterceptor(cfg.Interceptors...))
	if cfg.Access != nil {
		options = append(options, grpc.Creds(cfg.Access.credentials()))
	}
	s := &Server{
		grpc:        grpc.NewServer(options...),
		health:      health.NewServer(),
		endWatches:  endWatches,
		connections: limits.Connections,
		strangers:   cfg.Access != nil,
	}
	service.Register(s.grpc)
	service.RegisterHealth(s.grpc, s.health)
	s.health.SetServingStatus(pb.PromptAssemblyService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	reflection.Register(s.grpc)
	observer.Know(s.grpc.GetServiceInfo())
	return s
}

// Stop closes all listeners and connections, and returns once no call is answered any more. Calls in
// flight fail.
func (s *Server) Stop() { s.grpc.Stop() }

// Health returns the server's health, overall and by service, for a listener of its own.
func (s *Server) Health() healthpb.HealthServer { return s.health }

// Drain tells health checks that the server is going away, goes on for the time of wait so that
// they can be heard, then refuses new calls and lets those in flight end. Health watches are ended
// then; whatever else is still open when ctx is done is cut off.
func (s *Server) Drain(ctx context.Context, wait time.Duration) {
	s.health.Shutdown()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	s.endWatches()
	defer context.AfterFunc(ctx, s.Stop)()
	s.grpc.GracefulStop()
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
