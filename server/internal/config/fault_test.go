package config_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptassembly/promptassembly/server/internal/config"
)

// A value is refused alike in a flag, in the environment and, in quotes or not, in the file.
func TestValuesThatAreRefused(t *testing.T) {
	for _, test := range []struct{ key, value, want string }{
		{"listen", "", "missing port in address; must be host:port, or unix:/path; without TLS on loopback"},
		{"listen", "127.0.0.1", `"127.0.0.1": missing port in address`},
		{"listen", "127.0.0.1:http", "the port is a number from 0 to 65535"},
		{"listen", "127.0.0.1:65536", "the port is a number from 0 to 65535"},
		{"listen", ":50051", `":50051" is not a loopback address or a unix socket; without TLS`},
		{"listen", "0.0.0.0:0", "not a loopback address"},
		{"listen", "[::]:0", "not a loopback address"},
		{"listen", "192.0.2.1:0", "not a loopback address"},
		{"listen", "localhost.example.org:0", "not a loopback address"},
		{"listen", "off", "missing port in address"},
		{"listen", "unix:run/promptd.sock", "the path of a unix socket is absolute"},
		{"listen", "unix:", "the path of a unix socket is absolute"},
		{"listen", "unix:/" + strings.Repeat("x", 107), "at most 107 bytes"},
		{"tls.trust_domain", "Example.org", "trust domain characters are limited"},
		{"tls.trust_domain", "spiffe://", "must be a SPIFFE trust domain, such as example.org"},
		{"tls.workload_api", "/run/agent.sock", "must be unix:///path or tcp://ip:port"},
		{"tls.workload_api", "tcp://localhost:1", "must be unix:///path or tcp://ip:port"},
		{"tls.client_name", "cn", `"cn": must be spiffe, dns or email`},
		{"tls.shortest_life", "999ms", "must be a duration of 1s to 8760h"},
		{"policy", strings.Repeat("x", 4097), "is no path; must be path of a file"},
		{"admin.listen", "50052", "missing port in address; must be host:port, unix:/path, or off"},
		{"log.format", "xml", `"xml": must be text or json`},
		{"log.level", "INFO", `"INFO": must be debug, info, warn or error`},
		{"tokenizers", "qwen3", `"qwen3" is not NAME=FILE, with a name of 1 to 64 ASCII letters, digits and . _ : / -; must be NAME=FILE, several with commas between`},
		{"tokenizers", "qwen3=", `is not NAME=FILE`},
		{"tokenizers", "=/t.json", `is not NAME=FILE`},
		{"tokenizers", "a=/t.json,", `"" is not NAME=FILE`},
		{"tokenizers", "qwen 3=/t.json", `is not NAME=FILE`},
		{"tokenizers", strings.Repeat("q", 65) + "=/t.json", `is not NAME=FILE`},
		{"tokenizers", "gpt-4o=/t.json", `has the name of a tokenizer that is built in`},
		{"tokenizers", "estimate=/t.json", `has the name of a tokenizer that is built in`},
		{"tokenizers", "a=/t.json,b=/t.json,a=/u.json", `a stands there twice`},
		{"tokenizers", strings.TrimSuffix(thirtyThree(), ","), `there are more than 32`},
		{"log.calls", "yes", `must be true or false`},
		{"log.scope", "", `"": must be hashed, plain or omitted`},
		{"log.scope_key", strings.Repeat("x", 4097), "must be text of at most 4096 bytes"},
		{"drain.wait", "-1s", `"-1s": must be a duration of 0s to 1h, such as 1m30s`},
		{"drain.timeout", "soon", `"soon": must be a duration of 0s to 24h`},
		{"drain.timeout", "20", "must be a duration"},
		{"limits.message_bytes", "16385KiB", `"16385KiB": must be bytes, 1KiB to 16MiB, such as 8MiB`},
		{"limits.message_bytes", "16MB", "must be bytes, "},
		{"limits.message_bytes", "1.5MiB", "must be bytes, "},
		{"limits.message_bytes", "-1", "must be bytes, "},
		{"limits.message_bytes", "0", "must be bytes, "},
		{"limits.in_flight_bytes", "9223372036854775807TiB", "must be bytes, 1MiB to 1TiB"},
		{"limits.streams", "0", `"0": must be a whole number, 1 to 4294967295`},
		{"limits.streams", "4294967296", "must be a whole number"},
		{"limits.streams", "1e3", "must be a whole number"},
		{"limits.caller_share", "0", `"0": must be a number above 0, at most 1`},
		{"limits.caller_share", "1.01", "must be a number above 0"},
		{"limits.caller_share", "NaN", "must be a number above 0"},
		{"limits.caller_share", "50%", "must be a number above 0"},
		{"limits.connection_age", "0s", "must be a duration of 1ms to 8760h"},
		{"keepalive.time", "999ms", "must be a duration of 1s to 24h"},
		{"memory.gc_percent", "0", "must be a whole number, 1 to 10000"},
		{"memory.limit", "off", "must be bytes, 16MiB to 16TiB"},
	} {
		t.Run(test.key+"="+test.value[:min(len(test.value), 30)], func(t *testing.T) {
			flag := strings.NewReplacer(".", "-", "_", "-").Replace(test.key)
			variable := "PROMPTD_" + strings.ToUpper(strings.ReplaceAll(test.key, ".", "_"))
			for origin, sources := range map[string]config.Sources{
				"--" + flag: {Flags: map[string]string{test.key: test.value}},
				variable:    {Environ: []string{variable + "=" + test.value}},
			} {
				got := faults(t, sources)
				if len(got) != 1 || got[0].Key != test.key || got[0].Origin != origin || !strings.Contains(got[0].Problem, test.want) {
					t.Errorf("faults %q, want one of %s of %s: %s", got, test.key, origin, test.want)
				}
			}
		})
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string // of each fault: key, line and problem
	}{
		{"unknown key", "listem: x\n", []string{"listem (FILE:1): there is no such key; there are listen, policy, tls, admin, tokenizers, log, drain, limits, keepalive, memory"}},
		{"unknown nested key", "log:\n  color: x\n", []string{"log.color (FILE:2): there is no such key; there are format, level, calls, scope, scope_key"}},
		{"dotted key", "log.level: info\n", []string{"log.level (FILE:1): there is no such key"}},
		{"the file itself", "config: x\n", []string{"config (FILE:1): there is no such key"}},
		{"merge key", "a: &a {x: 1}\nlog: {<<: *a}\n", []string{"a (FILE:1): there is no such key", "log.<< (FILE:2): there is no such key"}},
		{"duplicate key", "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", []string{"listen (FILE:2): stands in line 1 already"}},
		{
			"duplicate nested key", "log: {level: info,\n level: warn}\ndrain: {}\nlog: {}\n",
			[]string{"log.level (FILE:2): stands in line 1 already", "log (FILE:4): stands in line 1 already"},
		},
		{"section that is none", "limits: 5\n", []string{"limits (FILE:1): is a number; must be a mapping, with message_bytes, streams"}},
		{"value that is a section", "listen: {a: b}\n", []string{"listen (FILE:1): is a mapping; must be host:port"}},
		{"list", "log: {level: [info]}\n", []string{"log.level (FILE:1): is a list; must be debug, info, warn or error"}},
		{"no value", "listen:\n", []string{"listen (FILE:1): is empty; must be host:port"}},
		{"number in quotes", "limits: {streams: '5'}\n", []string{"limits.streams (FILE:1): is text; must be a whole number"}},
		{"bool in quotes", "log: {calls: 'true'}\n", []string{"log.calls (FILE:1): is text; must be true or false"}},
		{"bool of old", "log: {calls: yes}\n", []string{"log.calls (FILE:1): is text; must be true or false"}},
		{"key that YAML takes for a number", "log: {scope_key: 012345}\n", []string{"log.scope_key (FILE:1): is a number; must be text of at most 4096 bytes, in quotes"}},
		{"duration without unit", "drain: {wait: 5}\n", []string{`drain.wait (FILE:1): "5": must be a duration`}},
		{"fraction of a count", "limits: {streams: 1.5}\n", []string{"limits.streams (FILE:1): is a number; must be a whole number"}},
		{"tag", "listen: !thing x\n", []string{"listen (FILE:1): is something else; must be host:port"}},
		{"scalar", "listen\n", []string{"FILE: is text; must be a mapping of keys to values"}},
		{"list of keys", "- listen\n", []string{"FILE: is a list; must be a mapping"}},
		{"documents", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", []string{"FILE: holds more than one YAML document"}},
		{"broken second document", "listen: 127.0.0.1:1\n---\n{", []string{"FILE: is no YAML: line 3"}},
		{"broken", "listen: [\n", []string{"FILE: is no YAML: line"}},
		{"tabs", "log:\n\tlevel: info\n", []string{"FILE: is no YAML: line 2"}},
		{"bytes", "\xff\xfe\xfd", []string{"FILE: is no YAML"}},
		{"too large", "#" + strings.Repeat("x", 1<<20), []string{"config (--config): FILE is larger than 1 MiB"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, test.text)
			got := faults(t, config.Sources{Flags: map[string]string{"config": path}})
			if len(got) != len(test.want) {
				t.Fatalf("%d faults, want %d: %v", len(got), len(test.want), got)
			}
			for i, want := range test.want {
				if text := strings.ReplaceAll(got[i].String(), path, "FILE"); !strings.HasPrefix(text, want) {
					t.Errorf("%s, want %s", text, want)
				}
			}
		})
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for path, want := range map[string]string{
		"":          "config (--config): names no file",
		"/nowhere":  "config (--config): open /nowhere: no such file or directory",
		t.TempDir(): "is a directory",
	} {
		if got := faults(t, config.Sources{Flags: map[string]string{"config": path}}); len(got) != 1 || !strings.Contains(got[0].String(), want) {
			t.Errorf("%q: faults %v, want %s", path, got, want)
		}
	}
	if got := faults(t, config.Sources{Environ: []string{"PROMPTD_CONFIG="}}); len(got) != 1 || got[0].String() != "config (PROMPTD_CONFIG): names no file" {
		t.Errorf("an empty PROMPTD_CONFIG: faults %v", got)
	}
}

func TestUnknownVariables(t *testing.T) {
	got := faults(t, config.Sources{Environ: []string{"PROMPTD_LISTEN=127.0.0.1:0", "PROMPTD_LIMITS_STREAM=5", "PROMPTD_PORT=50051", "PROMPTD_=", "PROMPTDX=1"}})
	want := []config.Fault{
		{Key: "PROMPTD_", Origin: "environment", Problem: "there is no such variable; the nearest is PROMPTD_CONFIG"},
		{Key: "PROMPTD_LIMITS_STREAM", Origin: "environment", Problem: "there is no such variable; the nearest is PROMPTD_LIMITS_STREAMS"},
		{Key: "PROMPTD_PORT", Origin: "environment", Problem: "there is no such variable; the nearest is PROMPTD_POLICY"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// All faults of all origins are told at once, those that another origin overrides, too.
func TestAllFaultsTogether(t *testing.T) {
	path := write(t, "listen: 0.0.0.0\nlimits:\n  streams: many\n  color: red\n")
	_, _, err := config.Load(config.Sources{
		Flags:   map[string]string{"config": path, "drain.wait": "2h", "limits.streams": "5"},
		Environ: []string{"PROMPTD_LOG_LEVEL=loud", "PROMPTD_COLOR=red"},
	})
	want := `the configuration is wrong:
  listen (FILE:1): "0.0.0.0": missing port in address; must be host:port, or unix:/path; without TLS on loopback
  limits.streams (FILE:3): is text; must be a whole number, 1 to 4294967295
  limits.color (FILE:4): there is no such key; there are message_bytes, streams, header_bytes, in_flight_bytes, buffered_bytes, caller_share, token_cache_bytes, call_timeout, unread_timeout, connections, handshake_timeout, connection_age, connection_age_grace, connection_idle
  PROMPTD_COLOR (environment): there is no such variable; the nearest is PROMPTD_CONFIG
  log.level (PROMPTD_LOG_LEVEL): "loud": must be debug, info, warn or error
  drain.wait (--drain-wait): "2h": must be a duration of 0s to 1h, such as 1m30s`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.ReplaceAll(err.Error(), path, "FILE")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No error shows what was meant to be a secret.
func TestFaultsShowNoSecret(t *testing.T) {
	for _, text := range []string{
		"log: {scope_key: [hunter2]}", "log: {scope_key: *hunter2}", "log: {scope_key: hunter2, scope_key: hunter2}",
		"log: {scope_key: " + strings.Repeat("hunter2", 1000) + "}", "log: {scope_key: !hunter2 x}", "log: {scope_key: {hunter2: 1}}",
	} {
		for _, fault := range faults(t, config.Sources{Flags: map[string]string{"config": write(t, text)}}) {
			if strings.Contains(fault.String(), "hunter2") {
				t.Errorf("%s shows in %s", text, fault)
			}
		}
	}
}

// faults returns what is wrong with a configuration, which must be something.
func faults(t *testing.T, from config.Sources) []config.Fault {
	t.Helper()
	_, _, err := config.Load(from)
	e, ok := errors.AsType[*config.Error](err)
	if err == nil {
		return nil
	}
	if !ok {
		t.Fatalf("error %v, want an *Error", err)
	}
	return e.Faults
}

// What keys mean for each other is checked once each is right by itself.
func TestKeysThatDoNotGoTogether(t *testing.T) {
	files := map[string]string{"tls.certificate": "/c", "tls.key": "/k", "tls.client_ca": "/ca", "tls.trust_domain": "example.org"}
	for _, test := range []struct {
		name  string
		given map[string]string
		want  []string
	}{
		{"certificate alone", map[string]string{"tls.certificate": "/c"}, []string{"tls.certificate (--tls-certificate): needs tls.key beside it"}},
		{"key alone", map[string]string{"tls.key": "/k"}, []string{"tls.key (--tls-key): needs tls.certificate beside it"}},
		{"authority alone", map[string]string{"tls.client_ca": "/ca"}, []string{
			"tls.client_ca (--tls-client-ca): needs tls.certificate beside it", "tls.client_ca (--tls-client-ca): needs tls.trust_domain beside it",
		}},
		{"trust domain alone", map[string]string{"tls.trust_domain": "example.org"}, []string{"tls.trust_domain (--tls-trust-domain): needs tls.client_ca beside it"}},
		{"files beside a Workload API", with(files, "tls.workload_api", "unix:///s"), []string{
			"tls.certificate (--tls-certificate): must not be set beside tls.workload_api", "tls.key (--tls-key): must not be set",
			"tls.client_ca (--tls-client-ca): must not be set", "tls.trust_domain (--tls-trust-domain): must not be set",
		}},
		{"another name beside a Workload API", map[string]string{"tls.workload_api": "unix:///s", "tls.client_name": "dns"}, []string{
			"tls.client_name (--tls-client-name): must be spiffe beside tls.workload_api",
		}},
		{"plaintext beyond this machine", map[string]string{"listen": "[::]:1"}, []string{"listen (--listen): \"[::]:1\" is not a loopback address"}},
		{"connections that outlive certificates", with(files, "tls.shortest_life", "45m59s"), []string{
			"limits.connection_age (default): a connection may last 23m", // 1.1 × 20m + 1m
		}},
		{"connections that just do not", with(files, "tls.shortest_life", "46m"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := faults(t, config.Sources{Flags: test.given})
			if len(got) != len(test.want) {
				t.Fatalf("faults %q, want %q", got, test.want)
			}
			for i, fault := range got {
				if !strings.HasPrefix(fault.String(), test.want[i]) {
					t.Errorf("fault %q, want %q", fault, test.want[i])
				}
			}
		})
	}
	if got := faults(t, config.Sources{Flags: with(files, "listen", ":1")}); len(got) != 0 {
		t.Errorf("TLS on every interface: %q", got)
	}
}

// with returns given and one more.
func with(given map[string]string, key, value string) map[string]string {
	all := maps.Clone(given)
	all[key] = value
	return all
}

// thirtyThree is a list of so many tokenizers, each with a comma behind it.
func thirtyThree() string {
	var list strings.Builder
	for i := range 33 {
		fmt.Fprintf(&list, "t%d=/t.json,", i)
	}
	return list.String()
}
