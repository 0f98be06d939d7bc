package server

import (
	"cmp"
	"runtime"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/promptassembly/promptassembly/server/internal/rpc"
)

// MaxMessageBytes is the size of the largest request that the contract allows.
const MaxMessageBytes = rpc.MaxMessageBytes

// Limits bounds what callers may take of a server. A field that is not positive is its default, unless
// it says otherwise: to have none of a limit, set it high.
type Limits struct {
	// MessageBytes is the size of the largest request, at most MaxMessageBytes, the default.
	MessageBytes int
	// Streams is how many calls a connection may have open. Default 128.
	Streams uint32
	// HeaderBytes is the size of the largest header list. Default 16 KiB.
	HeaderBytes uint32
	// InFlightBytes bounds the memory of the calls that are answered, or wait for it, at the same time, as
	// estimated from their encoded size and number of elements; a call beyond it is refused as
	// OVERLOADED. A call's work grows with its size, so this bounds the time that calls wait for each
	// other, too. Default 4 MiB for each processor that the process may use.
	InFlightBytes int64
	// CallerShare is the part of InFlightBytes and of BufferedBytes that one caller may take, above 0
	// and at most 1, which is what a larger one means. One call counts as that at most. A caller is an
	// identity with all its connections; a connection as long as nobody is identified, and for answers.
	// Default 0.5.
	CallerShare float64
	// BufferedBytes bounds the memory of answers until their callers have read them, and also that of
	// requests that are slow to arrive: each counts as 256 KiB after 20 ms, as 4 MiB after 250 ms and
	// as MessageBytes after a second. A call beyond the first is refused as OVERLOADED, one beyond the
	// second ends as CANCELLED. A caller with nothing else under way may have 64 KiB of answers and 256
	// KiB of requests beyond it. Default 128 MiB.
	BufferedBytes int64
	// TokenCacheBytes bounds the memory of token counts that are remembered from call to call, 36 bytes
	// each. Negative: none are. Default 32 MiB.
	TokenCacheBytes int64
	// CallTimeout is how long a call may take from its headers to its answer; a caller's own deadline
	// may be earlier. A health watch may take longer. Default 30 s.
	CallTimeout time.Duration
	// UnreadTimeout is how long an answer may wait for its caller to read it, before the connection
	// is closed. Default 1 min.
	UnreadTimeout time.Duration
	// Connections is how many connections a listener may have open. A further one takes the place of the
	// oldest on which no caller was identified; if there is none, or Config.Access is nil, it waits.
	// Default 4,096.
	Connections int
	// HandshakeTimeout is how long a connection may take to be set up. Default 10 s.
	HandshakeTimeout time.Duration
	// ConnectionAge is after which time a connection is asked to end, by up to 10 % earlier or later,
	// so that clients find new replicas, and certificates are looked at anew. Default 20 min.
	ConnectionAge time.Duration
	// ConnectionAgeGrace is how long its calls may go on after that. Default 1 min.
	ConnectionAgeGrace time.Duration
	// ConnectionIdle is after which time without a call a connection is ended. Default 15 min.
	ConnectionIdle time.Duration
	// KeepaliveTime is after which time of silence a client is asked for a sign of life. Default 1 min.
	KeepaliveTime time.Duration
	// KeepaliveTimeout is how long the client may take to answer. Default 20 s.
	KeepaliveTimeout time.Duration
	// KeepaliveMinTime is how often a client may ask for a sign of life; one that asks more often is
	// disconnected. Default 10 s.
	KeepaliveMinTime time.Duration
}

// DefaultLimits returns the limits that are in force where nothing else is set.
func DefaultLimits() Limits {
	return Limits{
		MessageBytes:       MaxMessageBytes,
		Streams:            128,
		HeaderBytes:        16 << 10,
		InFlightBytes:      int64(runtime.GOMAXPROCS(0)) * 4 << 20,
		CallerShare:        0.5,
		BufferedBytes:      128 << 20,
		TokenCacheBytes:    32 << 20,
		CallTimeout:        30 * time.Second,
		UnreadTimeout:      time.Minute,
		Connections:        4096,
		HandshakeTimeout:   10 * time.Second,
		ConnectionAge:      20 * time.Minute,
		ConnectionAgeGrace: time.Minute,
		ConnectionIdle:     15 * time.Minute,
		KeepaliveTime:      time.Minute,
		KeepaliveTimeout:   20 * time.Second,
		KeepaliveMinTime:   10 * time.Second,
	}
}

// withDefaults returns the limits with their defaults filled in.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		MessageBytes:       min(positive(l.MessageBytes, d.MessageBytes), MaxMessageBytes),
		Streams:            positive(l.Streams, d.Streams),
		HeaderBytes:        positive(l.HeaderBytes, d.HeaderBytes),
		InFlightBytes:      positive(l.InFlightBytes, d.InFlightBytes),
		CallerShare:        min(positive(l.CallerShare, d.CallerShare), 1),
		BufferedBytes:      positive(l.BufferedBytes, d.BufferedBytes),
		TokenCacheBytes:    cmp.Or(l.TokenCacheBytes, d.TokenCacheBytes),
		CallTimeout:        positive(l.CallTimeout, d.CallTimeout),
		UnreadTimeout:      positive(l.UnreadTimeout, d.UnreadTimeout),
		Connections:        positive(l.Connections, d.Connections),
		HandshakeTimeout:   positive(l.HandshakeTimeout, d.HandshakeTimeout),
		ConnectionAge:      positive(l.ConnectionAge, d.ConnectionAge),
		ConnectionAgeGrace: positive(l.ConnectionAgeGrace, d.ConnectionAgeGrace),
		ConnectionIdle:     positive(l.ConnectionIdle, d.ConnectionIdle),
		KeepaliveTime:      positive(l.KeepaliveTime, d.KeepaliveTime),
		KeepaliveTimeout:   positive(l.KeepaliveTimeout, d.KeepaliveTimeout),
		KeepaliveMinTime:   positive(l.KeepaliveMinTime, d.KeepaliveMinTime),
	}
}

// within returns the limits with connections that end within a time, that of their calls included.
func (l Limits) within(longest time.Duration) Limits {
	l.ConnectionAgeGrace = min(l.ConnectionAgeGrace, longest/4)
	l.ConnectionAge = min(l.ConnectionAge, (longest-l.ConnectionAgeGrace)*10/11) // it varies by 10 %
	return l
}

func positive[T int | int64 | uint32 | float64 | time.Duration](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}

// workers is how many goroutines wait for calls, for each processor. Calls beyond them get one of their
// own, whose stack has to grow first: that takes a tenth of a small call's time.
const workers = 32

// What a caller with nothing else under way may have buffered whatever others hold.
const (
	spareRequestBytes = 256 << 10 // so that it gets 250 ms
	spareAnswerBytes  = 64 << 10
)

// connectionWindow is how many bytes a connection may send before it is told that they have come. grpc's
// own way, to widen it to whatever comes in, lets a caller that floods take up the processor with
// reading, while others wait. It bounds no memory.
const connectionWindow = 256 << 10

// options returns the limits that grpc enforces.
func (l Limits) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InitialConnWindowSize(connectionWindow),
		grpc.NumStreamWorkers(uint32(workers * runtime.GOMAXPROCS(0))),
		grpc.MaxConcurrentStreams(l.Streams),
		grpc.MaxHeaderListSize(l.HeaderBytes),
		grpc.ConnectionTimeout(l.HandshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle:     l.ConnectionIdle,
			MaxConnectionAge:      l.ConnectionAge,
			MaxConnectionAgeGrace: l.ConnectionAgeGrace,
			Time:                  l.KeepaliveTime,
			Timeout:               l.KeepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             l.KeepaliveMinTime,
			PermitWithoutStream: true,
		}),
	}
}
