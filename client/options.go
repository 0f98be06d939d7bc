package client

import (
	"context"
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// What is in force where no option says otherwise.
const (
	defaultTimeout        = 30 * time.Second
	defaultAttemptTimeout = 5 * time.Second
	defaultAttempts       = 5
	defaultMaxReceive     = 256 << 20
	defaultMaxSend        = 16 << 20
	// A server disconnects a client that asks more often than every 10 s.
	defaultKeepaliveTime    = 15 * time.Second
	defaultKeepaliveTimeout = 5 * time.Second
)

// Option changes how a Client behaves. A number or duration of 0 or less means the default.
type Option func(*options)

type options struct {
	credentials    credentials.TransportCredentials // of WithTLS
	tlsFiles       *TLSFiles
	tokenFile      *string
	serverName     string // that all servers have to prove; empty: each its own
	keepalive      keepalive.ClientParameters
	dial           []grpc.DialOption
	timeout        time.Duration
	attemptTimeout time.Duration
	attempts       int
	maxReceive     int
	maxSend        int
	failFast       bool
	sleep          func(context.Context, time.Duration)
	now            func() time.Time
}

func newOptions(opts []Option) options {
	o := options{
		keepalive:      keepalive.ClientParameters{Time: defaultKeepaliveTime, Timeout: defaultKeepaliveTimeout},
		timeout:        defaultTimeout,
		attemptTimeout: defaultAttemptTimeout,
		attempts:       defaultAttempts,
		maxReceive:     defaultMaxReceive,
		maxSend:        defaultMaxSend,
		sleep:          sleep,
		now:            time.Now,
	}
	for _, set := range opts {
		set(&o)
	}
	return o
}

// WithTLS secures connections with config; nil means the system's certificate authorities, and no
// certificate of the client's own. Default: plaintext, for servers on the same machine or behind a
// mesh. It and WithTLSFiles replace each other.
func WithTLS(config *tls.Config) Option {
	return func(o *options) {
		o.credentials, o.tlsFiles, o.serverName = credentials.NewTLS(config), nil, ""
		if config != nil {
			o.serverName = config.ServerName
		}
	}
}

// WithTLSFiles secures connections with TLS 1.3 and what files hold. They are read by Dial and
// DialAll, which fail if one cannot be used (with a *FileError in the chain), and again for each new
// connection: a certificate or authority that is replaced is in force from then on, on connections
// that exist once the server has ended them. While a file cannot be used, what it held before is, for
// a minute; then new connections fail, and calls with UNAVAILABLE.
func WithTLSFiles(files TLSFiles) Option {
	return func(o *options) {
		o.credentials, o.tlsFiles, o.serverName = nil, &files, files.ServerName
	}
}

// WithTokenFile sends the token that a file holds with each call, and when a server is asked for its
// health: as `authorization: Bearer …`, without the newline at the end of the file. The token is at
// most 16 KiB of printable ASCII.
//
// Dial and DialAll read the file, and fail if it cannot be used (with a *FileError in the chain). It is
// read again, at most once a second, so that a token that is replaced is in force soon. While the file
// cannot be used, what it held before is, for a minute; then calls fail with UNAUTHENTICATED.
//
// Without TLS the token goes to loopback addresses and unix sockets only, and through no proxy: where
// the target leads elsewhere, be it with one of its addresses, calls fail with UNAUTHENTICATED.
func WithTokenFile(path string) Option {
	return func(o *options) { o.tokenFile = &path }
}

// WithTimeout sets how long a call may take, all attempts and waits included; an earlier deadline
// of its context wins. Default 30 s.
func WithTimeout(d time.Duration) Option {
	return func(o *options) { o.timeout = positive(d, defaultTimeout) }
}

// WithAttemptTimeout sets how long a call waits for one server, before it asks the next. It grows
// with the request, to twice as much at 16 MiB, and doubles each time that it has passed. Where there
// are several servers the first attempt takes at most half of the call's time; the last may take
// what is left of it. Default 5 s.
func WithAttemptTimeout(d time.Duration) Option {
	return func(o *options) { o.attemptTimeout = positive(d, defaultAttemptTimeout) }
}

// WithAttempts sets how many times a call is sent at most; 1 turns repeats off. What a server refuses
// as OVERLOADED is not counted, unless n is 1. Default 5.
func WithAttempts(n int) Option {
	return func(o *options) { o.attempts = positive(n, defaultAttempts) }
}

// WithMaxReceive sets the size of the largest answer, in bytes; a larger one fails the call with
// RESOURCE_EXHAUSTED. An answer can be 15 times its request, where most of that has to be escaped.
// Default 256 MiB, which holds any.
func WithMaxReceive(bytes int) Option {
	return func(o *options) { o.maxReceive = positive(bytes, defaultMaxReceive) }
}

// WithMaxSend sets the size of the largest request, in bytes; one that is larger fails with
// RESOURCE_EXHAUSTED before it is sent. Default 16 MiB, the most that a server takes.
func WithMaxSend(bytes int) Option {
	return func(o *options) { o.maxSend = positive(bytes, defaultMaxSend) }
}

// WithKeepalive sets after which time of silence a server is asked for a sign of life, and how long
// it may take to give one before its connection is given up. A server disconnects a client that
// asks more often than it likes: every 10 s by default, and gRPC takes less than that for 10 s.
// Default 15 s and 5 s.
func WithKeepalive(silence, timeout time.Duration) Option {
	return func(o *options) {
		o.keepalive.Time = positive(silence, defaultKeepaliveTime)
		o.keepalive.Timeout = positive(timeout, defaultKeepaliveTimeout)
	}
}

// WithFailFast makes an attempt fail with UNAVAILABLE while no server can be reached. Default: it
// waits for one, as long as the call's time lasts.
func WithFailFast() Option {
	return func(o *options) { o.failFast = true }
}

// WithDialOptions adds options of gRPC's, such as interceptors, a stats handler or credentials for
// each call. They come after the client's own and can undo them.
func WithDialOptions(opts ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, opts...) }
}

func positive[T int | time.Duration](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}
