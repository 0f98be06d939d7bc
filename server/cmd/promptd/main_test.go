package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asPromptd, in the environment, makes the test binary promptd itself.
const asPromptd = "TEST_AS_PROMPTD"

func TestMain(m *testing.M) {
	if os.Getenv(asPromptd) != "" {
		main()
	}
	os.Exit(withFiles(func() int {
		status := m.Run()
		if err := goleak.Find(); status == 0 && err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return status
	}))
}

func TestCommandLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	file := writeFile(t, "listen: 0.0.0.0:1\nadmim: {}\n")

	for _, test := range []struct {
		name           string
		args           []string
		environ        []string
		status         int
		stdout, stderr string // what is in them; empty: they are
	}{
		{"version", []string{"--version"}, nil, exitDone, "promptd ", ""},
		{"unknown flag", []string{"--port", "1"}, nil, exitUsage, "", "unknown flag: --port\nSee 'promptd --help'."},
		{"flag without value", []string{"--listen"}, nil, exitUsage, "", "needs an argument: --listen"},
		{"flag of another type", []string{"--drain-timeout", "soon"}, nil, exitUsage, "", `drain.timeout (--drain-timeout): "soon": must be a duration`},
		{"argument", []string{"serve"}, nil, exitUsage, "", `takes no arguments, got "serve"`},
		{"no port", []string{"--listen", "127.0.0.1"}, nil, exitUsage, "", "missing port"},
		{"every interface", []string{"--listen", ":0"}, nil, exitUsage, "", "not a loopback address or a unix socket; without TLS"},
		{"another host", []string{"--listen", "192.0.2.1:0"}, nil, exitUsage, "", "not a loopback address"},
		{"unknown variable", nil, []string{"PROMPTD_LISTEM=x"}, exitUsage, "", "the nearest is PROMPTD_LISTEN"},
		{"escape sequence", nil, []string{"PROMPTD_\x1b[31m=x"}, exitUsage, "", "PROMPTD_\ufffd[31m"},
		{"no file", []string{"--config", "/nowhere"}, nil, exitUsage, "", "config (--config): open /nowhere"},
		{"file", nil, []string{"PROMPTD_CONFIG=" + file}, exitUsage, "", "  admim (" + file + ":2): there is no such key"},
		{"port that is taken", withAccess("--listen", taken.Addr().String(), "--admin-listen", "off"), nil, exitFailure, "", "address already in use"},
		{"admin port that is taken", withAccess("--listen", "127.0.0.1:0", "--admin-listen", taken.Addr().String()), nil, exitFailure, "", "key=admin.listen"},

		{"no policy", nil, nil, exitUsage, "", "--policy is needed"},
		{"policy that is not there", []string{"--policy", "/nowhere", "--admin-listen", "off"}, nil, exitFailure, "", "open /nowhere"},
		{"nobody could call", []string{"--policy", party.Policy, "--admin-listen", "off"}, nil, exitFailure, "", "nobody could be identified"},
		{"certificate without key", []string{"--tls-certificate", "/c"}, nil, exitUsage, "", "tls.certificate (--tls-certificate): needs tls.key beside it"},
		{"certificate beside a Workload API", []string{"--tls-certificate", "/c", "--tls-workload-api", "unix:///s"}, nil, exitUsage, "", "must not be set beside tls.workload_api"},
		{"authority without trust domain", withAccess("--tls-trust-domain", ""), nil, exitUsage, "", "tls.client_ca (--tls-client-ca): needs tls.trust_domain beside it"},
		{"connections that outlive certificates", withAccess("--tls-shortest-life", "30m"), nil, exitUsage, "", "must be at most half of tls.shortest_life, which is 15m"},
		{"dev of another host", []string{"dev", "--listen", "192.0.2.1:0"}, nil, exitUsage, "", "serves loopback addresses and unix sockets only"},
		{"dev with a policy", []string{"dev", "--policy", party.Policy}, nil, exitUsage, "", "policy must not be set"},
		{"dev without a folder", []string{"dev", "--dir", ""}, nil, exitUsage, "", "--dir names no folder"},

		{"config", []string{"config"}, nil, exitDone, "promptd config [command]", ""},
		{"config and more", []string{"config", "hide"}, nil, exitUsage, "", `takes no arguments, got "hide"`},
		{"config show", []string{"config", "show"}, []string{"PROMPTD_LOG_LEVEL=warn"}, exitDone, "log.level                    warn             PROMPTD_LOG_LEVEL\n", ""},
		{"config show of a flag", []string{"config", "show", "--log-calls=false"}, nil, exitDone, "--log-calls\n", ""},
		{"config show of a flag before it", []string{"--drain-wait", "7s", "config", "show"}, nil, exitDone, "--drain-wait\n", ""},
		{"config show as YAML", []string{"config", "show", "-o", "yaml"}, nil, exitDone, "drain:\n  wait: 0s\n", ""},
		{"config show as something else", []string{"config", "show", "-o", "toml"}, nil, exitUsage, "", `--output "toml": must be text or yaml`},
		{"config show of what is wrong", []string{"config", "show", "--config", file}, nil, exitUsage, "", "See 'promptd config show --help'."},
		{"completion", []string{"completion", "bash"}, nil, exitDone, "__start_promptd", ""},
		{"completion of a choice", []string{"__complete", "--log-level", ""}, nil, exitDone, "debug\ninfo\nwarn\nerror\n:4\n", "ShellCompDirectiveNoFileComp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // in case it serves
			defer cancel()
			var stdout, stderr bytes.Buffer
			if status := run(ctx, test.args, test.environ, &stdout, &stderr); status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
			for _, output := range []struct{ name, got, want string }{
				{"stdout", stdout.String(), test.stdout}, {"stderr", stderr.String(), test.stderr},
			} {
				if !strings.Contains(output.got, output.want) || output.want == "" && output.got != "" {
					t.Errorf("%s %q, want %q", output.name, output.got, output.want)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var output bytes.Buffer
	if status := run(t.Context(), []string{"--help"}, nil, &output, &output); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
	for _, flag := range []string{
		"--listen address", "(default 127.0.0.1:50051)", "--drain-timeout duration", "(0s to 24h) (default 20s)",
		"--log-format text|json", "--log-calls ", "--limits-in-flight-bytes size", "(default 4MiB a processor)",
		"--config file", "--version", "GOMEMLIMIT",
	} {
		if !strings.Contains(output.String(), flag) {
			t.Errorf("no %s in %s", flag, output.String())
		}
	}
}

func writeFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "promptd.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
