package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/grpclog"
)

// The first lines say what runs and what was set, but no secret.
func TestFirstLines(t *testing.T) {
	file := writeFile(t, "log: {scope_key: hunter2}\n")
	p := start(t, "--config", file, "--drain-timeout", "3s")
	p.log.wait(t, `level=INFO msg=serving address=127\.0\.0\.1:\d+ admin=127\.0\.0\.1:\d+ version=".+Unicode`)
	configured := p.log.wait(t, `level=INFO msg=configured (.*)`)[0]
	want := `listen="127.0.0.1:0 (--listen)" policy="` + party.Policy + ` (--policy)" ` +
		`tls.certificate="` + party.Server.Certificate + ` (--tls-certificate)" tls.key="` + party.Server.Key + ` (--tls-key)" ` +
		`tls.client_ca="` + party.CA + ` (--tls-client-ca)" tls.trust_domain="promptassembly.test (--tls-trust-domain)" admin.listen="127.0.0.1:0 (--admin-listen)" ` +
		`log.scope_key="(redacted) (` + file + `)" drain.timeout="3s (--drain-timeout)"`
	if configured != want {
		t.Errorf("configured %s, want %s", configured, want)
	}
	p.stop()
	p.ends(t)
	p.log.wait(t, `level=INFO msg=draining wait=0s timeout=3s`)
	p.log.wait(t, `level=INFO msg=stopped`)
	for _, line := range p.log.rest() {
		if strings.Contains(line, "hunter2") {
			t.Errorf("the secret is in %s", line)
		}
	}
}

func TestJSON(t *testing.T) {
	p := startLogging(t, "--log-format", "json")
	p.log.wait(t, `"msg":"serving"`)
	p.stop()
	p.ends(t)
	p.log.wait(t, `"msg":"stopped"`)
	for _, line := range p.log.rest() {
		var record struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level != "INFO" || record.Msg == "" || record.Time == "" {
			t.Errorf("%v in %s", err, line)
		}
	}
}

func TestLevel(t *testing.T) {
	p := startLogging(t, "--log-level", "error", "--log-format", "json")
	// gRPC's log comes out here and nowhere else, from the level of the configuration on.
	for !p.log.any(`"level":"ERROR","msg":"an error","by":"grpc"`) {
		grpclog.Warning("a warning")
		grpclog.Errorf("an %s", "error")
		time.Sleep(5 * time.Millisecond)
	}
	p.stop()
	p.ends(t)
	for _, line := range p.log.rest() {
		if !strings.Contains(line, `"level":"ERROR"`) {
			t.Errorf("logged %s, want errors only", line)
		}
	}
}
