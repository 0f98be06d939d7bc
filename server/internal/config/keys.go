package config

import (
	"math"
	"strings"
	"time"

	"github.com/promptassembly/promptassembly/server"
)

// FileKey names the YAML file: as the flag --config and as PROMPTD_CONFIG, and not in the file.
const FileKey = "config"

// Key is one thing that can be set.
type Key struct {
	// Name is the key's path: sections and a name, with dots between.
	Name string
	// Kind is what values look like.
	Kind Kind
	// Default is the value that is in force where nothing else is said, as it would be written.
	Default string
	// Computed says how the default comes about where it depends on the machine or on another key.
	Computed string
	// Min and Max bound a duration (in nanoseconds), a size (in bytes) and a count; both are allowed.
	Min, Max int64
	// Choices are the values of a Choice, at least two.
	Choices []string
	// Help is one line, without the default and the range.
	Help string

	// allowed says what values an address or a text has, and check refuses others.
	allowed string
	check   func(text string) error
}

// Flag returns the name of the key's flag, without dashes.
func (k Key) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name) }

// Env returns the name of the key's environment variable.
func (k Key) Env() string { return envPrefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_")) }

// DefaultText says what the default is, or how it comes about.
func (k Key) DefaultText() string {
	if k.Computed != "" {
		return k.Computed
	}
	return k.Default
}

const day = 24 * time.Hour

// Keys returns all keys, section by section. The defaults of limits are those of the server.
func Keys() []Key {
	d := server.DefaultLimits()
	return []Key{
		text("listen", Address, "127.0.0.1:50051", "host:port, or unix:/path; without TLS on loopback", checkListen, "where calls are served; port 0 takes a free one"),
		text("policy", Text, "", "path of a file", checkPath, "YAML file that says who may call and assert what; reloaded when it changes"),
		text("tls.certificate", Text, "", "path of a file", checkPath, "the server's certificate and its chain, PEM; reloaded when it changes, as are the next two"),
		text("tls.key", Text, "", "path of a file", checkPath, "the key of it, PEM"),
		text("tls.client_ca", Text, "", "path of a file", checkPath, "authorities whose client certificates are believed, PEM; without it none is asked for"),
		text("tls.trust_domain", Text, "", "a SPIFFE trust domain, such as example.org", checkTrustDomain, "whose names the certificates of tls.client_ca bear"),
		choice("tls.client_name", "spiffe", "which name of a client certificate counts: its one SPIFFE ID, DNS name or e-mail address", "spiffe", "dns", "email"),
		text("tls.workload_api", Text, "", "unix:///path or tcp://ip:port", checkWorkloadAPI, "SPIFFE Workload API that gives certificate, key and authorities, in place of the files"),
		duration("tls.shortest_life", time.Hour, time.Second, 365*day, "shortest life of a client certificate that is believed; connections end within half of it, before which clients renew it"),
		text("admin.listen", Address, "127.0.0.1:50052", "host:port, unix:/path, or off", checkAdmin, "where health and metrics are served, in plaintext; it shows no content"),
		text("tokenizers", Text, "", "NAME=FILE, several with commas between", checkTokenizers, "further token counters, by name, and the tokenizer.json file of each, which is read at the start"),
		choice("log.format", "text", "form of the log on standard error", "text", "json"),
		choice("log.level", "info", "least severe level that is logged", "debug", "info", "warn", "error"),
		{Name: "log.calls", Kind: Bool, Default: "true", Help: "log a record of each call, without memory or segment text"},
		choice("log.scope", "hashed", "how such a record shows the user scope", "hashed", "plain", "omitted"),
		{Name: "log.scope_key", Kind: Secret, Help: "key of the scope's hash (HMAC-SHA-256), so that no scope can be guessed from it; not for a flag, which process lists show"},
		duration("drain.wait", 0, 0, time.Hour, "time between NOT_SERVING and refusing new calls, after SIGTERM or SIGINT"),
		duration("drain.timeout", 20*time.Second, 0, day, "how long calls in flight may take after that"),

		size("limits.message_bytes", int64(d.MessageBytes), 1<<10, server.MaxMessageBytes, "largest request"),
		count("limits.streams", int64(d.Streams), 1, math.MaxUint32, "calls that a connection may have open"),
		size("limits.header_bytes", int64(d.HeaderBytes), 1<<10, 16<<20, "largest header list"),
		computed("4MiB a processor", size("limits.in_flight_bytes", d.InFlightBytes, 1<<20, 1<<40,
			"memory of the calls that are received and answered at the same time, as estimated; calls beyond it are refused")),
		size("limits.buffered_bytes", d.BufferedBytes, 1<<20, 1<<40,
			"memory of answers until they are read, and as much for requests that arrive slowly; calls beyond it are refused"),
		{Name: "limits.caller_share", Kind: Fraction, Default: formatFraction(d.CallerShare), Help: "part of each that the calls of one caller may take, and of answers one connection"},
		size("limits.token_cache_bytes", d.TokenCacheBytes, 0, 16<<30,
			"memory of token counts that are remembered from call to call, apart for each caller; 0: none are"),
		duration("limits.call_timeout", d.CallTimeout, time.Millisecond, day, "how long a call may take, from its headers to its answer"),
		duration("limits.unread_timeout", d.UnreadTimeout, time.Millisecond, day, "how long an answer may wait for its caller to read it, before the connection is closed"),
		count("limits.connections", int64(d.Connections), 1, math.MaxInt32, "open connections; a further one takes the place of the oldest without an identified caller, or waits"),
		duration("limits.handshake_timeout", d.HandshakeTimeout, time.Millisecond, day, "how long a connection may take to be set up"),
		duration("limits.connection_age", d.ConnectionAge, time.Millisecond, 365*day, "after which time a connection is asked to end"),
		duration("limits.connection_age_grace", d.ConnectionAgeGrace, time.Millisecond, day, "how long its calls may go on after that"),
		duration("limits.connection_idle", d.ConnectionIdle, time.Millisecond, 365*day, "after which time without a call a connection is ended"),

		duration("keepalive.time", d.KeepaliveTime, time.Second, day, "after which silence a client is asked for a sign of life"),
		duration("keepalive.timeout", d.KeepaliveTimeout, time.Millisecond, day, "how long it may take to answer"),
		duration("keepalive.min_time", d.KeepaliveMinTime, time.Millisecond, day, "how often a client may ask for one; who asks more often is disconnected"),

		count("memory.gc_percent", 400, 1, 10_000, "growth of the heap between garbage collections, in percent; GOGC wins over it"),
		computed("4 × limits.in_flight_bytes + 2 × limits.buffered_bytes + limits.token_cache_bytes + 128MiB", size("memory.limit",
			memoryLimit(d.InFlightBytes, d.BufferedBytes, d.TokenCacheBytes), 16<<20, 1<<44,
			"soft limit of the process's memory; GOMEMLIMIT wins over it")),
	}
}

// memoryLimit is the default of memory.limit: a call in flight takes a few times what it is estimated
// at until its garbage is collected, and the rest is for the process itself.
func memoryLimit(inFlight, buffered, cache int64) int64 {
	return 4*inFlight + 2*buffered + cache + 128<<20
}

// computed returns key with an account of how its default comes about.
func computed(how string, key Key) Key {
	key.Computed = how
	return key
}

func text(name string, kind Kind, byDefault, allowed string, check func(string) error, help string) Key {
	return Key{Name: name, Kind: kind, Default: byDefault, allowed: allowed, check: check, Help: help}
}

func choice(name, byDefault, help string, choices ...string) Key {
	return Key{Name: name, Kind: Choice, Default: byDefault, Choices: choices, Help: help}
}

func duration(name string, byDefault, least, most time.Duration, help string) Key {
	return Key{Name: name, Kind: Duration, Default: formatDuration(byDefault), Min: int64(least), Max: int64(most), Help: help}
}

func size(name string, byDefault, least, most int64, help string) Key {
	return Key{Name: name, Kind: Size, Default: formatSize(byDefault), Min: least, Max: most, Help: help}
}

func count(name string, byDefault, least, most int64, help string) Key {
	return Key{Name: name, Kind: Count, Default: formatCount(byDefault), Min: least, Max: most, Help: help}
}
