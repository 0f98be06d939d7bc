package admin

import (
	"context"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const index = `promptd

/livez    200 while the process runs
/readyz   200 while it accepts calls, 503 otherwise; and what of its
          configuration could not be reloaded
/metrics  metrics for Prometheus

The port speaks gRPC's health protocol, too: grpc.health.v1.Health.
`

// pages answers GET and HEAD on the paths of the index.
func pages(cfg Config, errorLog *log.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, index) })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusOK, "ready\n"
		if ready, why := readiness(r.Context(), cfg.Health); !ready {
			status, text = http.StatusServiceUnavailable, "not ready: "+why+"\n"
		}
		if cfg.Problems != nil {
			for _, problem := range cfg.Problems() {
				text += "problem: " + problem + "\n"
			}
		}
		say(w, status, text)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{
		ErrorLog:            errorLog,
		MaxRequestsInFlight: 8,
		Timeout:             requestTimeout,
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Whoever reads too slowly must not keep a goroutine. A writer that knows no deadline is a
		// test's.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(requestTimeout))
		mux.ServeHTTP(w, r)
	})
}

// readiness reports whether the server as a whole is SERVING, or else why not.
func readiness(ctx context.Context, health healthpb.HealthServer) (ready bool, why string) {
	answer, err := health.Check(ctx, new(healthpb.HealthCheckRequest))
	switch {
	case err != nil:
		return false, "health is unknown"
	case answer.GetStatus() == healthpb.HealthCheckResponse_NOT_SERVING:
		return false, "health is NOT_SERVING, as the server is going away"
	default:
		return answer.GetStatus() == healthpb.HealthCheckResponse_SERVING, "health is " + answer.GetStatus().String()
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
