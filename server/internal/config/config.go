// Package config tells promptd how to run: from flags, the environment, a YAML file and defaults,
// all of which one table of keys describes.
package config

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/knadh/koanf/v2"

	"github.com/promptassembly/promptassembly/server"
)

// Config is how promptd runs. Load makes it; every value is within the range of its key.
type Config struct {
	// Listen is the address that calls are served on: host:port, on loopback unless TLS is on, or
	// unix:/path.
	Listen string
	// Access says who may call. Its Policy may be empty.
	Access server.AccessConfig
	// Tokenizers are the files of further token counters; no two have one name.
	Tokenizers []server.TokenizerFile
	// AdminListen is the address that health and metrics are served on; empty: none.
	AdminListen string
	// Log says how promptd logs.
	Log Log
	// CallLog says what the log holds of each call.
	CallLog server.CallLog
	// Drain says how promptd ends.
	Drain Drain
	// Limits bounds what callers may take. No field is zero.
	Limits server.Limits
	// Memory guides the garbage collector.
	Memory Memory
}

// Log says how promptd logs.
type Log struct {
	// JSON: an object a line; otherwise logfmt.
	JSON bool
	// Level is the least severe level that is logged.
	Level slog.Level
}

// Drain says how promptd ends.
type Drain struct {
	// Wait is the time between NOT_SERVING and refusing new calls.
	Wait time.Duration
	// Timeout is how long calls in flight may take after that.
	Timeout time.Duration
}

// Memory guides the garbage collector. What the environment says to the Go runtime itself, by GOGC
// and GOMEMLIMIT, wins: that field is zero then.
type Memory struct {
	// GCPercent is by how much the heap may grow between collections; 0: as GOGC says.
	GCPercent int
	// Limit is the soft limit of the process's memory in bytes; 0: as GOMEMLIMIT says.
	Limit int64
}

// newConfig returns what the values of all keys mean.
func newConfig(k *koanf.Koanf) Config {
	return Config{
		Listen: k.String("listen"),
		Access: server.AccessConfig{
			Policy: k.String("policy"),
			TLS: server.TLS{
				Certificate:  k.String("tls.certificate"),
				Key:          k.String("tls.key"),
				ClientCA:     k.String("tls.client_ca"),
				TrustDomain:  k.String("tls.trust_domain"),
				ClientName:   map[string]server.CertificateName{"dns": server.DNSName, "email": server.EmailName}[k.String("tls.client_name")],
				WorkloadAPI:  k.String("tls.workload_api"),
				ShortestLife: k.Duration("tls.shortest_life"),
			},
		},
		Tokenizers:  tokenizersOf(k.String("tokenizers")),
		AdminListen: addressOf(k.String("admin.listen")),
		Log: Log{
			JSON:  k.String("log.format") == "json",
			Level: map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[k.String("log.level")],
		},
		CallLog: server.CallLog{
			On:       k.Bool("log.calls"),
			Scope:    map[string]server.ScopeLogging{"plain": server.ScopePlain, "omitted": server.ScopeOmitted}[k.String("log.scope")],
			ScopeKey: []byte(k.String("log.scope_key")),
		},
		Drain: Drain{Wait: k.Duration("drain.wait"), Timeout: k.Duration("drain.timeout")},
		Limits: server.Limits{
			MessageBytes:       k.Int("limits.message_bytes"),
			Streams:            uint32(k.Int64("limits.streams")),
			HeaderBytes:        uint32(k.Int64("limits.header_bytes")),
			InFlightBytes:      k.Int64("limits.in_flight_bytes"),
			CallerShare:        k.Float64("limits.caller_share"),
			BufferedBytes:      k.Int64("limits.buffered_bytes"),
			TokenCacheBytes:    cmp.Or(k.Int64("limits.token_cache_bytes"), -1), // 0 is none
			CallTimeout:        k.Duration("limits.call_timeout"),
			UnreadTimeout:      k.Duration("limits.unread_timeout"),
			Connections:        k.Int("limits.connections"),
			HandshakeTimeout:   k.Duration("limits.handshake_timeout"),
			ConnectionAge:      k.Duration("limits.connection_age"),
			ConnectionAgeGrace: k.Duration("limits.connection_age_grace"),
			ConnectionIdle:     k.Duration("limits.connection_idle"),
			KeepaliveTime:      k.Duration("keepalive.time"),
			KeepaliveTimeout:   k.Duration("keepalive.timeout"),
			KeepaliveMinTime:   k.Duration("keepalive.min_time"),
		},
		Memory: Memory{GCPercent: k.Int("memory.gc_percent"), Limit: k.Int64("memory.limit")},
	}
}
