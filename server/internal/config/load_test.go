package config_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/config"
)

func TestDefaults(t *testing.T) {
	cfg, settings, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{
		Listen:      "127.0.0.1:50051",
		Access:      server.AccessConfig{TLS: server.TLS{ShortestLife: time.Hour}},
		AdminListen: "127.0.0.1:50052",
		CallLog:     server.CallLog{On: true, ScopeKey: []byte{}},
		Drain:       config.Drain{Timeout: 20 * time.Second},
		Limits:      server.DefaultLimits(),
		Memory:      config.Memory{GCPercent: 400, Limit: 4*server.DefaultLimits().InFlightBytes + 416<<20},
	}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, setting := range settings {
		if setting.Origin != "default" {
			t.Errorf("%s comes from %s, want default", setting.Name, setting.Origin)
		}
	}
}

// Each key, set to something else than its default, gets to its place.
func TestEveryKey(t *testing.T) {
	path := write(t, everything)
	cfg, settings, err := config.Load(config.Sources{Flags: map[string]string{"config": path}})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{
		Listen: "[::1]:1",
		Access: server.AccessConfig{Policy: "/p.yaml", TLS: server.TLS{
			Certificate: "/c.pem", Key: "/k.pem", ClientCA: "/ca.pem", TrustDomain: "example.org", ClientName: server.DNSName,
			ShortestLife: 8 * time.Hour,
		}},
		Tokenizers: []server.TokenizerFile{{Name: "qwen3", Path: "/q=1.json"}, {Name: "meta/llama-3:8b_v.1", Path: "l.json"}},
		Log:        config.Log{JSON: true, Level: slog.LevelWarn},
		CallLog: server.CallLog{
			Scope: server.ScopeOmitted, ScopeKey: []byte("0123 ünïcode"),
		},
		Drain: config.Drain{Wait: 5 * time.Second, Timeout: 90 * time.Second},
		Limits: server.Limits{
			MessageBytes: 1 << 20, Streams: 4294967295, HeaderBytes: 32 << 10, InFlightBytes: 3 << 30, CallerShare: 1,
			BufferedBytes: 5 << 20, TokenCacheBytes: 7 << 20, CallTimeout: time.Second, UnreadTimeout: 11 * time.Second, Connections: 77, HandshakeTimeout: 2 * time.Second, ConnectionAge: 3 * time.Hour,
			ConnectionAgeGrace: 4 * time.Second, ConnectionIdle: 5 * time.Second,
			KeepaliveTime: 6 * time.Second, KeepaliveTimeout: 7 * time.Second, KeepaliveMinTime: 8 * time.Millisecond,
		},
		Memory: config.Memory{GCPercent: 100, Limit: 1 << 30},
	}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, setting := range settings {
		if setting.Name == "tls.workload_api" { // it goes beside none of the others
			continue
		}
		if setting.Origin != path {
			t.Errorf("%s comes from %s, want the file", setting.Name, setting.Origin)
		}
		if setting.Value == setting.Default {
			t.Errorf("%s is set to its default", setting.Name)
		}
	}
}

const everything = `# every key
listen: '[::1]:1'
policy: /p.yaml
tls:
  certificate: /c.pem
  key: /k.pem
  client_ca: /ca.pem
  trust_domain: example.org
  client_name: dns
  shortest_life: 8h
admin:
  listen: off
tokenizers: >-
  qwen3=/q=1.json,
  meta/llama-3:8b_v.1=l.json
log: {format: json, level: warn, calls: false, scope: omitted, scope_key: "0123 ünïcode"}
drain:
  wait: 5s
  timeout: 1m30s
limits:
  message_bytes: 1048576
  streams: 4294967295
  header_bytes: 32KiB
  in_flight_bytes: 3GiB
  caller_share: 1
  buffered_bytes: 5MiB
  token_cache_bytes: 7MiB
  call_timeout: 1s
  unread_timeout: 11s
  connections: 77
  handshake_timeout: 2s
  connection_age: 3h
  connection_age_grace: 4s
  connection_idle: 5000ms
keepalive:
  time: 6s
  timeout: 7s
  min_time: 8ms
memory:
  gc_percent: 100
  limit: 1024MiB
`

func TestWorkloadAPI(t *testing.T) {
	cfg, _, err := config.Load(config.Sources{Flags: map[string]string{
		"listen": ":50051", "tls.workload_api": "unix:///run/spire/agent.sock", "tls.shortest_life": "47m",
	}})
	want := server.TLS{WorkloadAPI: "unix:///run/spire/agent.sock", ShortestLife: 47 * time.Minute}
	if err != nil || cfg.Access.TLS != want || cfg.Listen != ":50051" {
		t.Errorf("%+v on %s, %v; want %+v", cfg.Access.TLS, cfg.Listen, err, want)
	}
}

// Of the four origins, the flag wins over the environment, that over the file, that over the default.
func TestPrecedence(t *testing.T) {
	path := write(t, "limits: {streams: 1}\ndrain: {wait: 1s, timeout: 1s}\nlog: {level: warn}\n")
	_, settings, err := config.Load(config.Sources{
		Flags:   map[string]string{"limits.streams": "3"},
		Environ: []string{"PROMPTD_CONFIG=" + path, "PROMPTD_LIMITS_STREAMS=2", "PROMPTD_DRAIN_WAIT=2s", "HOME=/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]string{
		"limits.streams": {"3", "--limits-streams"},
		"drain.wait":     {"2s", "PROMPTD_DRAIN_WAIT"},
		"drain.timeout":  {"1s", path},
		"log.level":      {"warn", path},
		"log.format":     {"text", "default"},
	} {
		if got := find(t, settings, name); got.Value != want[0] || got.Origin != want[1] {
			t.Errorf("%s is %s from %s, want %s", name, got.Value, got.Origin, want)
		}
	}
}

// The flag that names the file wins over the variable, whose file is not read then.
func TestFileOfTheFlag(t *testing.T) {
	path := write(t, "limits: {streams: 1}\n")
	cfg, _, err := config.Load(config.Sources{
		Flags: map[string]string{"config": path}, Environ: []string{"PROMPTD_CONFIG=/nowhere"},
	})
	if err != nil || cfg.Limits.Streams != 1 {
		t.Errorf("%d streams, %v", cfg.Limits.Streams, err)
	}
}

func TestMemoryLimitFollowsTheCalls(t *testing.T) {
	cfg, settings, err := config.Load(config.Sources{Environ: []string{"PROMPTD_LIMITS_IN_FLIGHT_BYTES=64MiB", "PROMPTD_LIMITS_BUFFERED_BYTES=32MiB", "PROMPTD_LIMITS_TOKEN_CACHE_BYTES=0"}})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Limits.TokenCacheBytes >= 0 {
		t.Errorf("%d bytes of remembered token counts, want none", cfg.Limits.TokenCacheBytes)
	}
	if got := find(t, settings, "memory.limit"); cfg.Memory.Limit != 448<<20 || got.Value != "448MiB" || got.Origin != "default" {
		t.Errorf("%d, which is %s from %s, want 448MiB by default", cfg.Memory.Limit, got.Value, got.Origin)
	}
}

// What the environment tells the Go runtime is in force, and is left to it.
func TestRuntimeVariablesWin(t *testing.T) {
	cfg, settings, err := config.Load(config.Sources{
		Flags:   map[string]string{"memory.gc_percent": "50", "memory.limit": "1GiB"},
		Environ: []string{"GOGC=off", "GOMEMLIMIT=2GiB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Memory != (config.Memory{}) {
		t.Errorf("memory %+v, want it left alone", cfg.Memory)
	}
	for name, want := range map[string][2]string{"memory.gc_percent": {"off", "GOGC"}, "memory.limit": {"2GiB", "GOMEMLIMIT"}} {
		if got := find(t, settings, name); got.Value != want[0] || got.Origin != want[1] {
			t.Errorf("%s is %s from %s, want %s", name, got.Value, got.Origin, want)
		}
	}
	if cfg, _, err := config.Load(config.Sources{Environ: []string{"GOGC=", "GOMEMLIMIT="}}); err != nil || cfg.Memory.GCPercent != 400 || cfg.Memory.Limit == 0 {
		t.Errorf("empty variables: memory %+v, %v, want the defaults", cfg.Memory, err)
	}
}

// Kubernetes puts such variables into every container beside a service that is named promptd.
func TestServiceLinksAreNoConfiguration(t *testing.T) {
	_, _, err := config.Load(config.Sources{Environ: []string{
		"PROMPTD_SERVICE_HOST=10.0.0.1", "PROMPTD_SERVICE_PORT=50051", "PROMPTD_SERVICE_PORT_GRPC=50051",
		"PROMPTD_PORT=tcp://10.0.0.1:50051", "PROMPTD_PORT_50051_TCP=tcp://10.0.0.1:50051",
		"PROMPTD_PORT_50051_TCP_PROTO=tcp", "PROMPTD_PORT_50051_TCP_PORT=50051", "PROMPTD_PORT_50051_TCP_ADDR=10.0.0.1",
		"PROMPTD_ADMIN_SERVICE_HOST=10.0.0.2", "PROMPTD_ADMIN_PORT=tcp://10.0.0.2:80",
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestFilesWithNothingInThem(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "---\n# nothing\n...\n", "limits:\n  # streams: 5\n", "{}\n", "null\n"} {
		if _, _, err := config.Load(config.Sources{Flags: map[string]string{"config": write(t, text)}}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnchors(t *testing.T) {
	path := write(t, "drain: {wait: &time 7s, timeout: *time}\n")
	cfg, _, err := config.Load(config.Sources{Flags: map[string]string{"config": path}})
	if err != nil || cfg.Drain.Timeout != 7*time.Second {
		t.Errorf("timeout %s, %v", cfg.Drain.Timeout, err)
	}
}

func find(t *testing.T, settings []config.Setting, name string) config.Setting {
	t.Helper()
	for _, setting := range settings {
		if setting.Name == name {
			return setting
		}
	}
	t.Fatalf("no %s", name)
	return config.Setting{}
}

// write makes a file of the text and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "promptd.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %s", part, text)
		}
	}
}
