package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// Metrics are the counters and histograms of calls. What gRPC servers have in common bears the names
// of go-grpc-prometheus, which dashboards and alerts know. No label holds content, a scope or an
// identity. A nil *Metrics counts nothing.
type Metrics struct {
	startedCalls *prometheus.CounterVec
	handledCalls *prometheus.CounterVec
	handling     *prometheus.HistogramVec
	refusals     *prometheus.CounterVec
	identities   *prometheus.CounterVec
	utilisation  *prometheus.HistogramVec
	open         prometheus.Gauge
	memory       []prometheus.Counter // by reason; 0 is nil
	segments     []prometheus.Counter
}

// NewMetrics returns metrics that are registered. It panics if they are there already, as
// prometheus.MustRegister does.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		registerer.MustRegister(c)
		return c
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		registerer.MustRegister(h)
		return h
	}
	m := &Metrics{
		startedCalls: counters("grpc_server_started_total",
			"Calls started on the server.", "grpc_type", "grpc_service", "grpc_method"),
		handledCalls: counters("grpc_server_handled_total",
			"Calls completed on the server, whatever the outcome.", "grpc_type", "grpc_service", "grpc_method", "grpc_code"),
		handling: histograms("grpc_server_handling_seconds",
			"Time from the start of a call to the hand-over of its answer to the connection.",
			prometheus.ExponentialBuckets(0.0001, 2.5, 15), // 0.1 ms to 37 s
			"grpc_type", "grpc_service", "grpc_method"),
		refusals: counters("promptassembly_refusals_total",
			"Calls refused, by the reason of their ErrorInfo.", "reason"),
		identities: counters("promptassembly_identity_refusals_total",
			"Calls refused for an identity, or a grant, that did not hold, by where it came from and the check that failed.", "source", "check"),
		utilisation: histograms("promptassembly_budget_utilisation_ratio",
			"Used part of a budget that has a limit.", prometheus.LinearBuckets(0.1, 0.1, 10), "budget"),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "promptassembly_connections", Help: "Open connections.",
		}),
	}
	registerer.MustRegister(m.open)
	m.memory = byReason(counters("promptassembly_memory_decisions_total",
		"Decisions on memories, by reason.", "reason"), memoryReasons)
	m.segments = byReason(counters("promptassembly_segment_decisions_total",
		"Decisions on prompt segments, by reason.", "reason"), segmentReasons)
	return m
}

// byReason returns the counter of each reason, all at 0.
func byReason(counters *prometheus.CounterVec, reasons []string) []prometheus.Counter {
	resolved := make([]prometheus.Counter, len(reasons))
	for i, reason := range reasons[1:] {
		resolved[i+1] = counters.WithLabelValues(reason)
	}
	return resolved
}

func (m *Metrics) connections(n float64) {
	if m != nil {
		m.open.Add(n)
	}
}

func (m *Metrics) started(method method) {
	if m != nil {
		m.startedCalls.WithLabelValues(method.kind, method.service, method.name).Inc()
	}
}

func (m *Metrics) ended(call *Call, code codes.Code, reason string, duration time.Duration) {
	if m == nil {
		return
	}
	kind, service, name := call.method.kind, call.method.service, call.method.name
	m.handledCalls.WithLabelValues(kind, service, name, code.String()).Inc()
	m.handling.WithLabelValues(kind, service, name).Observe(duration.Seconds())
	if reason != "" {
		m.refusals.WithLabelValues(reason).Inc()
	}
	if failed := call.unidentified; failed.check != "" {
		m.identities.WithLabelValues(failed.source, failed.check).Inc()
	}
	for i, n := range call.memory {
		if n > 0 {
			m.memory[i].Add(float64(n))
		}
	}
	for i, n := range call.segments {
		if n > 0 {
			m.segments[i].Add(float64(n))
		}
	}
	for _, u := range call.budgets {
		m.utilisation.WithLabelValues(u.budget).Observe(u.ratio)
	}
}
