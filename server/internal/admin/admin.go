// Package admin serves what operators and their tools ask a running promptd: whether it is alive and
// ready, over HTTP and by gRPC's health protocol, and its metrics. It shows nothing of what calls
// hold.
package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Config says what is served. All fields but Problems and Logger are needed.
type Config struct {
	// Health answers for readiness and for gRPC's health protocol.
	Health healthpb.HealthServer
	// Metrics is what /metrics shows.
	Metrics prometheus.Gatherer
	// Problems is what /readyz says beside the answer, a line each; nil: nothing.
	Problems func() []string
	// Logger hears of requests that could not be answered; nil means slog.Default().
	Logger *slog.Logger
}

// Bounds of what a client may take.
const (
	headerTimeout  = 5 * time.Second  // for a request's header to arrive
	requestTimeout = 10 * time.Second // for a request to arrive, and for an answer of /metrics and the like to leave
	idleTimeout    = 2 * time.Minute  // between requests
	maxHeaderBytes = 16 << 10
	maxConnections = 256
	maxGRPCBytes   = 4 << 10 // a health request names a service
	silence        = time.Minute
	silenceTimeout = 20 * time.Second // for a sign of life after a minute of silence; it ends watches of clients that are gone
	stopTimeout    = time.Second      // for answers that are on their way when the server stops
)

// Server serves HTTP/1.1 and, for gRPC, HTTP/2, both in plaintext and on one port.
type Server struct {
	http       *http.Server
	grpc       *grpc.Server
	endWatches context.CancelFunc
}

// New returns a server. The caller serves a listener with it, and ends it with Stop.
func New(cfg Config) *Server {
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	serving, endWatches := context.WithCancel(context.Background())
	s := &Server{grpc: grpc.NewServer(grpc.MaxRecvMsgSize(maxGRPCBytes)), endWatches: endWatches}
	healthpb.RegisterHealthServer(s.grpc, cfg.Health)

	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	s.http = &http.Server{
		Handler:           split(s.grpc, pages(cfg, errorLog)),
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: silenceTimeout},
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		IdleTimeout:       idleTimeout, // and no WriteTimeout: a watch lasts
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog,
		BaseContext:       func(net.Listener) context.Context { return serving },
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// Serve answers on the listener until Stop, and returns nil then. It closes the listener.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(netutil.LimitListener(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Stop ends health watches, lets other answers that are on their way leave, for a second at most,
// and closes every connection.
func (s *Server) Stop() {
	s.endWatches()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.grpc.Stop()
}

// split sends gRPC calls to one handler and all else to the other.
func split(calls, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			calls.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}
