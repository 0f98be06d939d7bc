package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// A policy file that was broken is told wherever people look, and the one before it stays in force until
// it is mended.
func TestBrokenPolicyIsTold(t *testing.T) {
	good := contentOf(t, party.Policy)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replacePolicy(t, path, good)
	p := start(t, "--policy", path)
	service := pb.NewPromptAssemblyServiceClient(dial(t, p.address))
	answered := func(when string, want codes.Code) {
		t.Helper()
		request := &pb.SelectMemoryRequest{UserScope: "user:mei"}
		if _, err := service.SelectMemory(t.Context(), request); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	wantReady(t, p, "ready\n", reloads{})
	answered("at first", codes.OK)

	const broken = "callers: [{}]"
	replacePolicy(t, path, strings.Replace(good, "callers:", broken+"\nbroken:", 1))
	p.log.wait(t, `level=ERROR msg="the new policy is not used; the one before stays in force" error=.*policy\.yaml`)
	wantReady(t, p, "ready\nproblem: policy: "+path, reloads{failed: 1, problems: 1})
	answered("while it is broken", codes.OK)

	replacePolicy(t, path, strings.ReplaceAll(good, "/harness}", "/another}"))
	p.log.wait(t, `level=INFO msg="policy reloaded"`)
	wantReady(t, p, "ready\n", reloads{ok: 1, failed: 1})
	answered("once it names the caller no more", codes.PermissionDenied)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantReady(t, p, "ready\nproblem: policy: ", reloads{ok: 1, failed: 2, problems: 1})
	answered("without it", codes.PermissionDenied)
	replacePolicy(t, path, good)
	wantReady(t, p, "ready\n", reloads{ok: 2, failed: 2})
	answered("in the end", codes.OK)
}

// replacePolicy replaces a file at once, as editors do.
func replacePolicy(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// A file that is written anew and has not changed, or is looked at once a minute, is no reload.
func TestUnchangedPolicyIsNotReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replacePolicy(t, path, contentOf(t, party.Policy))
	p := start(t, "--policy", path)
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		replacePolicy(t, path, contentOf(t, party.Policy))
	}
	if got := countedReloads(t, p); got != (reloads{}) || p.log.any("policy reloaded") {
		t.Errorf("%+v counted, want none", got)
	}
}

// reloads are what the metrics say of policy files.
type reloads struct{ ok, failed, problems int }

// wantReady waits until readiness is told with a text, which is all of it where it ends a line, and until
// the metrics have counted what they should.
func wantReady(t *testing.T, p running, text string, counted reloads) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		code, body := get(t, p.admin, "/readyz")
		if code != 200 {
			t.Fatalf("readyz %d with %q, want 200", code, body)
		}
		told := body == text || !strings.HasSuffix(text, "\n") && strings.HasPrefix(body, text)
		got := countedReloads(t, p)
		// A broken file is tried again whenever something moves in its folder.
		if told && got.ok == counted.ok && got.failed >= counted.failed && got.problems == counted.problems {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("readyz says %q and the metrics %+v, want %q and %+v", body, got, text, counted)
		}
	}
}

func countedReloads(t *testing.T, p running) reloads {
	t.Helper()
	_, metrics := get(t, p.admin, "/metrics")
	value := func(series string) int {
		found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\d+)$`).FindStringSubmatch(metrics)
		if found == nil {
			return 0
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return reloads{
		ok:       value(`promptassembly_access_reloads_total{result="ok",what="policy"}`),
		failed:   value(`promptassembly_access_reloads_total{result="failed",what="policy"}`),
		problems: value("promptassembly_access_problems"),
	}
}
