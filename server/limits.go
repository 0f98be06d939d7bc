package server

import (
	"cmp"
	"runtime"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/rpc"
)

// MaxMessageBytes is the size of the largest request that the contract allows.
const MaxMessageBytes = rpc.MaxMessageBytes

// Limits bounds what callers may take of a server. A zero field is its default.
type Limits struct {
	// MessageBytes is the size of the largest request, at most MaxMessageBytes, the default.
	MessageBytes int
	// Streams is how many calls a connection may have open. Default 128.
	Streams uint32
	// HeaderBytes is the size of the largest header list. Default 64 KiB.
	HeaderBytes uint32
	// InFlightBytes bounds the memory of all calls in flight, as estimated from their encoded size
	// and number of elements; a call beyond it is refused as OVERLOADED. As the work that a call
	// makes grows with it, it bounds the time that a call waits for others, too. Default 16 MiB for
	// each processor that the process may use, and at least 32 MiB.
	InFlightBytes int64
	// CallerShare is the part of InFlightBytes that the calls of one caller may take, above 0 and at
	// most 1. A caller is a connection, as long as callers are not authenticated. Default 0.5.
	CallerShare float64
	// ReceiveTimeout is how long a request may take to arrive. Default 30 s.
	ReceiveTimeout time.Duration
	// HandshakeTimeout is how long a connection may take to be set up. Default 10 s.
	HandshakeTimeout time.Duration
	// ConnectionAge is after which time a connection is asked to end, by up to 10 % earlier or later,
	// so that clients find new replicas. Default 30 min.
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
		HeaderBytes:        64 << 10,
		InFlightBytes:      max(32<<20, int64(runtime.GOMAXPROCS(0))<<24),
		CallerShare:        0.5,
		ReceiveTimeout:     30 * time.Second,
		HandshakeTimeout:   10 * time.Second,
		ConnectionAge:      30 * time.Minute,
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
		MessageBytes:       cmp.Or(l.MessageBytes, d.MessageBytes),
		Streams:            cmp.Or(l.Streams, d.Streams),
		HeaderBytes:        cmp.Or(l.HeaderBytes, d.HeaderBytes),
		InFlightBytes:      cmp.Or(l.InFlightBytes, d.InFlightBytes),
		CallerShare:        cmp.Or(l.CallerShare, d.CallerShare),
		ReceiveTimeout:     cmp.Or(l.ReceiveTimeout, d.ReceiveTimeout),
		HandshakeTimeout:   cmp.Or(l.HandshakeTimeout, d.HandshakeTimeout),
		ConnectionAge:      cmp.Or(l.ConnectionAge, d.ConnectionAge),
		ConnectionAgeGrace: cmp.Or(l.ConnectionAgeGrace, d.ConnectionAgeGrace),
		ConnectionIdle:     cmp.Or(l.ConnectionIdle, d.ConnectionIdle),
		KeepaliveTime:      cmp.Or(l.KeepaliveTime, d.KeepaliveTime),
		KeepaliveTimeout:   cmp.Or(l.KeepaliveTimeout, d.KeepaliveTimeout),
		KeepaliveMinTime:   cmp.Or(l.KeepaliveMinTime, d.KeepaliveMinTime),
	}
}
