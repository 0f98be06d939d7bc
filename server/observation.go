package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"

	"github.com/promptassembly/promptassembly/server/internal/admission"
	"github.com/promptassembly/promptassembly/server/internal/observe"
	"github.com/promptassembly/promptassembly/server/tokens"
)

// CallLog says what the record of a call holds beside its method, code, reasons, sizes and duration.
// It never holds memory or segment text.
type CallLog struct {
	// On puts a record of each call into the log: health checks, reflection and unknown methods at the
	// level of debugging, all others as information. A bug is logged by itself, as an error.
	On bool
	// Scope says how the user scope is shown. The zero value shows its hash.
	Scope ScopeLogging
	// ScopeKey is the key of the hash (HMAC-SHA-256), without which whoever reads the log can tell
	// whether a guessed scope is in it. Empty: a plain SHA-256.
	ScopeKey []byte
}

// ScopeLogging says how the call log shows a user scope.
type ScopeLogging uint8

// How the call log shows a user scope.
const (
	ScopeHashed  ScopeLogging = iota // the first 16 hexadecimal digits of its hash
	ScopePlain                       // as it was sent
	ScopeOmitted                     // not at all
)

// show returns how a user scope is shown.
func (l CallLog) show(scope string) string {
	switch l.Scope {
	case ScopePlain:
		return scope
	case ScopeOmitted:
		return ""
	default:
		var h hash.Hash
		if len(l.ScopeKey) > 0 {
			h = hmac.New(sha256.New, l.ScopeKey)
		} else {
			h = sha256.New()
		}
		h.Write([]byte(scope))
		return hex.EncodeToString(h.Sum(nil)[:8])
	}
}

// observer returns what observes calls as configured.
func (c Config) observer(log *slog.Logger) *observe.Observer {
	o := &observe.Observer{Scope: c.CallLog.show}
	if c.CallLog.On {
		o.Log = log
	}
	if c.Metrics != nil {
		o.Metrics = observe.NewMetrics(c.Metrics)
	}
	return o
}

// observation returns the options that the observer and, where there are to be spans, their maker
// need; in this order, so that spans end after the observer has annotated them.
func (c Config) observation(o *observe.Observer) []grpc.ServerOption {
	options := []grpc.ServerOption{grpc.StatsHandler(o)}
	if c.Tracing != nil {
		spans := otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(c.Tracing),
			otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
			otelgrpc.WithPropagators(propagation.TraceContext{}),
		)
		options = append(options, grpc.StatsHandler(observe.Spans{Handler: spans, Observer: o}))
	}
	return options
}

// gauges registers what a gate holds.
func gauges(registerer prometheus.Registerer, name, what string, gate *admission.Gate) {
	registerer.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "promptassembly_" + name + "_bytes", Help: "Estimated bytes of " + what + ".",
		}, func() float64 { return float64(gate.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "promptassembly_" + name + "_limit_bytes", Help: "How many bytes of " + what + " there may be.",
		}, func() float64 { return float64(gate.Limit()) }),
	)
}

// countCache registers what came of looking for remembered counts, and the memory that they take.
func countCache(registerer prometheus.Registerer, cache *tokens.Cache, counters tokens.Set) {
	for _, counter := range counters {
		name := counter.Name()
		if name == tokens.EstimateName {
			continue // is not remembered
		}
		labels := prometheus.Labels{"tokenizer": name}
		registerer.MustRegister(
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "promptassembly_token_cache_hits_total", ConstLabels: labels,
				Help: "Texts whose tokens were counted before, in this call or another.",
			}, func() float64 { return float64(cache.Use(name).Hits) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "promptassembly_token_cache_misses_total", ConstLabels: labels,
				Help: "Texts whose tokens had to be counted, but for the shortest.",
			}, func() float64 { return float64(cache.Use(name).Misses) }),
		)
	}
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "promptassembly_token_cache_bytes", Help: "Bytes that remembered token counts take.",
	}, func() float64 { return float64(cache.Bytes()) }))
}
