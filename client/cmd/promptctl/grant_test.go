package main

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/dev"
)

// keygen makes a key, and returns the paths of the private and the public one.
func keygen(t *testing.T, args ...string) (private, public string) {
	t.Helper()
	private = filepath.Join(t.TempDir(), "key.jwk")
	got := promptctl(t, "", append([]string{"grant", "keygen", "--out", private}, args...)...)
	if got.status != 0 || got.stderr != "" || strings.Contains(got.stdout, `"d"`) {
		t.Fatalf("%+v", got)
	}
	return private, file(t, "keys.jwks", got.stdout)
}

var withQuery = `{"queryId":"q",` + goodRequest[1:]

// What is signed is carried, verified and shown; for both RPCs and both kinds of keys.
func TestGrantRoundTrip(t *testing.T) {
	for _, test := range []struct{ alg, rpc, request string }{
		{"EdDSA", "select", withQuery},
		{"ES256", "plan", `{"queryId":"q","memory":` + goodRequest + `}`},
	} {
		private, public := keygen(t, "--alg", test.alg, "--kid", "k1")
		if info, err := os.Stat(private); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%v, %v", info, err)
		}
		sign := []string{"grant", "sign", "--rpc", test.rpc, "--key", private, "--issuer", "i", "--audience", "a"}
		carrying := promptctl(t, test.request, sign...)
		if carrying.status != 0 || !strings.HasPrefix(carrying.stdout, "{\n  \"queryId\": \"q\",\n  \"grant\": \"") {
			t.Fatalf("%+v", carrying)
		}
		alone := promptctl(t, test.request, append(sign, "--token")...)
		for _, in := range []string{carrying.stdout, alone.stdout} {
			verified := promptctl(t, in, "grant", "verify", "--rpc", test.rpc, "--keys", public, "--issuer", "i", "--audience", "a")
			if verified.status != 0 || !strings.Contains(verified.stdout, `"memoryId": "m1"`) {
				t.Errorf("%+v", verified)
			}
			shown := promptctl(t, in, "grant", "show", "--rpc", test.rpc)
			for _, want := range []string{`"verified": false`, `"kid": "k1"`, `"alg": "` + test.alg + `"`, `"memoryId": "m1"`} {
				if shown.status != 0 || !strings.Contains(shown.stdout, want) {
					t.Errorf("%+v, want %s", shown, want)
				}
			}
		}
		other := map[string]string{"select": "plan", "plan": "select"}[test.rpc]
		got := promptctl(t, alone.stdout, "grant", "verify", "--rpc", other, "--keys", public, "--issuer", "i", "--audience", "a")
		if got.status != 1 || got.stderr != "promptctl: the grant does not hold: payload\n" || got.stdout != "" {
			t.Errorf("for the other RPC: %+v", got)
		}
	}
}

// The vectors, which have every check, by the command that people check their own grants with.
func TestGrantVerifyVectors(t *testing.T) {
	const folder = "../../../proto/vectors/grants/"
	files, err := filepath.Glob(folder + "*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ Method, QueryID, Now, Token, Check string }
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		of := "select"
		if v.Method == "PlanPrompt" {
			of = "plan"
		}
		got := promptctl(t, v.Token+"\n", "grant", "verify", "--rpc", of, "--keys", folder+"keys.jwks",
			"--issuer", "https://harness.example.org", "--audience", "prompt-assembly", "--query-id", v.QueryID, "--at", v.Now)
		want := result{status: 1, stderr: "promptctl: the grant does not hold: " + v.Check + "\n"}
		if v.Check == "" {
			want = result{stdout: got.stdout}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

// An agent that may assert nothing gets the harness's answer, byte for byte.
func TestGrantIsCarried(t *testing.T) {
	files, err := dev.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := files.Access()
	cfg.Logger = slog.New(slog.DiscardHandler)
	access, err := server.OpenAccess(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer access.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Config{Logger: cfg.Logger, Access: access})
	go func() { _ = srv.Serve(listener) }()
	defer srv.Stop()
	call := func(who dev.Identity, in string) result {
		return promptctl(t, in, "select", "--server", listener.Addr().String(), "--ca", files.CA, "--cert", who.Certificate, "--key", who.Key)
	}
	request, err := os.ReadFile(files.Request)
	if err != nil {
		t.Fatal(err)
	}
	want := call(files.Harness, string(request))
	if want.status != 0 {
		t.Fatalf("%+v", want)
	}
	carrying := promptctl(t, string(request), "grant", "sign", "--key", files.GrantKey, "--issuer", dev.GrantIssuer, "--audience", dev.GrantAudience)
	if got := call(files.Agent, carrying.stdout); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := call(files.Agent, string(request)); got.status != 1 || !strings.Contains(got.stderr, "AUTHORITY_NOT_PERMITTED") {
		t.Errorf("%+v", got)
	}
	other := strings.Replace(carrying.stdout, `"queryId": "try"`, `"queryId": "another"`, 1)
	if got := call(files.Agent, other); got.status != 1 || !strings.Contains(got.stderr, "check: query") {
		t.Errorf("for another query: %+v", got)
	}
}

func TestGrantUsage(t *testing.T) {
	private, public := keygen(t)
	const notJSON = "{secret"
	for _, test := range []struct {
		name   string
		stdin  string
		args   []string
		status int
		want   string
	}{
		{"keygen into nothing", "", []string{"keygen"}, 2, "--out is missing"},
		{"keygen over a key", "", []string{"keygen", "--out", private}, 1, "exists"},
		{"a long kid", "", []string{"keygen", "--out", private + "2", "--kid", strings.Repeat("k", 257)}, 2, "--kid must be"},
		{"another algorithm", "", []string{"keygen", "--out", private + "2", "--alg", "HS256"}, 2, "EdDSA, ES256"},
		{"no key", withQuery, []string{"sign", "--issuer", "i", "--audience", "a"}, 2, "--key is missing"},
		{"no issuer", withQuery, []string{"sign", "--key", private, "--audience", "a"}, 2, "--issuer is missing"},
		{"six minutes", withQuery, []string{"sign", "--key", private, "--issuer", "i", "--audience", "a", "--life", "6m"}, 2, "at most 5m"},
		{"a public key", withQuery, []string{"sign", "--key", public, "--issuer", "i", "--audience", "a"}, 2, "not a JSON Web Key"},
		{"no such key", withQuery, []string{"sign", "--key", private + "3", "--issuer", "i", "--audience", "a"}, 2, "no such file"},
		{"no query", goodRequest, []string{"sign", "--key", private, "--issuer", "i", "--audience", "a"}, 1, "query_id must be 1 to 256 bytes"},
		{"no JSON", notJSON, []string{"sign", "--key", private, "--issuer", "i", "--audience", "a"}, 1, "line 1"},
		{"nothing", "", []string{"verify", "--keys", public, "--issuer", "i", "--audience", "a"}, 1, "does not hold: form"},
		{"keys that are none", "", []string{"verify", "--keys", private, "--issuer", "i", "--audience", "a"}, 2, "not a JSON Web Key Set"},
		{"a time that is none", "", []string{"verify", "--keys", public, "--issuer", "i", "--audience", "a", "--at", "noon"}, 2, "RFC 3339"},
		{"a request without a grant", withQuery, []string{"verify", "--keys", public, "--issuer", "i", "--audience", "a"}, 1, "carries no grant"},
		{"nothing to show", "secret.secret.secret", []string{"show"}, 1, "does not hold: form"},
	} {
		got := promptctl(t, test.stdin, append([]string{"grant"}, test.args...)...)
		if got.status != test.status || !strings.Contains(got.stderr, test.want) || got.stdout != "" || strings.Contains(got.stderr, "secret") {
			t.Errorf("%s: %+v, want %d and %q", test.name, got, test.status, test.want)
		}
	}
}
