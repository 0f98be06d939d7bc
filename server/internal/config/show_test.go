package config_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/internal/config"
)

func TestText(t *testing.T) {
	path := write(t, "drain: {wait: 90s}\nadmin: {listen: ''}\n")
	text := show(t, config.WriteText, config.Sources{
		Flags:   map[string]string{"config": path, "log.calls": "false", "limits.in_flight_bytes": "64MiB", "listen": "unix:/a b"},
		Environ: []string{"PROMPTD_LOG_SCOPE_KEY=hunter2", "GOGC=off"},
	})
	want := `listen                       "unix:/a b"  --listen
policy                       ""           default
tls.certificate              ""           default
tls.key                      ""           default
tls.client_ca                ""           default
tls.trust_domain             ""           default
tls.client_name              spiffe       default
tls.workload_api             ""           default
tls.shortest_life            1h           default
admin.listen                 off          FILE
tokenizers                   ""           default
log.format                   text         default
log.level                    info         default
log.calls                    false        --log-calls
log.scope                    hashed       default
log.scope_key                (redacted)   PROMPTD_LOG_SCOPE_KEY
drain.wait                   1m30s        FILE
drain.timeout                20s          default
limits.message_bytes         16MiB        default
limits.streams               128          default
limits.header_bytes          16KiB        default
limits.in_flight_bytes       64MiB        --limits-in-flight-bytes
limits.buffered_bytes        128MiB       default
limits.caller_share          0.5          default
limits.token_cache_bytes     32MiB        default
limits.call_timeout          30s          default
limits.unread_timeout        1m           default
limits.connections           4096         default
limits.handshake_timeout     10s          default
limits.connection_age        20m          default
limits.connection_age_grace  1m           default
limits.connection_idle       15m          default
keepalive.time               1m           default
keepalive.timeout            20s          default
keepalive.min_time           10s          default
memory.gc_percent            off          GOGC
memory.limit                 672MiB       default
`
	if diff := cmp.Diff(want, string(bytes.ReplaceAll(text, []byte(path), []byte("FILE")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The YAML that is shown, read again, gives the same configuration. Only a secret, and what is said
// to the Go runtime, must be said again.
func TestYAMLIsAConfiguration(t *testing.T) {
	everywhere := []string{"PROMPTD_LOG_SCOPE_KEY=hunter2", "GOGC=50"}
	for name, from := range map[string]config.Sources{
		"defaults":   {},
		"everything": {Flags: map[string]string{"config": write(t, everything)}},
		"some": {Flags: map[string]string{
			"listen": `unix:/a"b\c: #ü` + "\t\u2028", "limits.caller_share": "1e-9", "limits.message_bytes": "1025", "drain.wait": "1.5s",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			from.Environ = everywhere
			want, _, err := config.Load(from)
			if err != nil {
				t.Fatal(err)
			}
			text := show(t, config.WriteYAML, from)
			if bytes.Contains(text, []byte("hunter2")) {
				t.Errorf("the secret is in %s", text)
			}
			contains(t, string(text), "  # scope_key: (redacted), from PROMPTD_LOG_SCOPE_KEY\n", "  # gc_percent: 50, from GOGC\n")
			got, settings, err := config.Load(config.Sources{Flags: map[string]string{"config": write(t, string(text))}, Environ: everywhere})
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if origin := find(t, settings, "listen").Origin; origin == "default" {
				t.Error("listen is not in the file")
			}
		})
	}
}

// show returns what write makes of a configuration.
func show(t *testing.T, write func(io.Writer, []config.Setting) error, from config.Sources) []byte {
	t.Helper()
	_, settings, err := config.Load(from)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := write(&text, settings); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}
