package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// agentMay is a policy file whose agent has more of an entry.
func agentMay(more string) string {
	return `version: 1
callers:
  - name: agent
    identities: [{source: mtls, spiffe: spiffe://example.org/agent}]
` + more
}

const problems = "promptassembly_access_problems"

// What a new policy file says is in force on connections that are open; one that is broken leaves what
// was, and says so until there is a good one.
func TestAccessPolicyReload(t *testing.T) {
	const little, more = "    scopes: [{exact: u}]\n", "    scopes: [{exact: u}, {exact: v}]\n    authorities: [current_turn]\n"
	g := serveAccess(t, newCA(t), agentMay(little), server.Config{})
	conn := g.as(t, exampleID("/agent"))
	reason := func(scope string, authority pb.Authority) string {
		c := candidate("m", "text")
		c.UserScope, c.Authority = scope, authority
		err := invoke(t.Context(), t, conn, &pb.SelectMemoryRequest{UserScope: scope, Candidates: list(c)}, nil)
		info, _ := refusalOf(err)
		return info.GetReason()
	}
	const scope, authority = "SCOPE_NOT_PERMITTED", "AUTHORITY_NOT_PERMITTED"
	is := func(v, u string) bool { return reason("v", 0) == v && reason("u", turn) == u }
	if !is(scope, authority) {
		t.Fatal("the agent may more, or less, than its policy says")
	}
	testca.Write(t, g.policy, []byte(agentMay(more)))
	eventually(t, "more is permitted", func() bool { return is("", "") })
	testca.Write(t, g.policy, []byte(agentMay(little)))
	eventually(t, "less is permitted", func() bool { return is(scope, authority) })
	testca.Write(t, g.policy, []byte(agentMay(more)))
	eventually(t, "more is permitted again", func() bool { return is("", "") })

	if g.value(t, problems) != 0 || len(g.access.Problems()) > 0 {
		t.Errorf("problems %v, want none", g.access.Problems())
	}
	failed := 0.0
	for name, broken := range map[string]string{
		"no YAML":         "version: [",
		"empty":           "",
		"an unknown key":  agentMay(little + "    sudo: true\n"),
		"another version": strings.Replace(agentMay(little), "version: 1", "version: 2", 1),
		"no keys": strings.Replace(agentMay(little), "callers:",
			"issuers: [{issuer: i, keys: {file: /nowhere/keys.json}, audiences: [a]}]\ncallers:", 1),
		"too large": agentMay(little) + "#" + strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			testca.Write(t, g.policy, []byte(broken))
			failed++
			eventually(t, "there is a problem", func() bool { return len(g.access.Problems()) == 1 })
			if problem := g.access.Problems()[0]; !strings.Contains(problem, "policy: ") || !strings.Contains(problem, g.policy) {
				t.Errorf("the problem is %q, and does not name the file", problem)
			}
			if g.value(t, problems) != 1 {
				t.Errorf("%v problems are counted", g.value(t, problems))
			}
			eventually(t, "it is counted", func() bool {
				return g.value(t, "promptassembly_access_reloads_total failed policy") >= failed
			})
			if !is("", "") {
				t.Error("the policy that was in force is not any more")
			}
			if log := g.accessLog.String(); !strings.Contains(log, "the new policy is not used") || !strings.Contains(log, `"level":"ERROR"`) {
				t.Errorf("the log is silent about it:\n%s", log)
			}
			testca.Write(t, g.policy, []byte(agentMay(more)))
			eventually(t, "the problem is gone", func() bool { return len(g.access.Problems()) == 0 && g.value(t, problems) == 0 })
		})
	}
	t.Run("no file", func(t *testing.T) {
		if err := os.Remove(g.policy); err != nil {
			t.Fatal(err)
		}
		eventually(t, "there is a problem", func() bool { return len(g.access.Problems()) == 1 })
		if !is("", "") {
			t.Error("the policy that was in force is not any more")
		}
		testca.Write(t, g.policy, []byte(agentMay(little)))
		eventually(t, "the new file is in force", func() bool { return is(scope, authority) && len(g.access.Problems()) == 0 })
	})
}

// Issuers and proxies come and go with the policy file, on connections that are open, too.
func TestAccessSourcesReload(t *testing.T) {
	i := newIssuer(t, "https://file.example")
	keys := i.file()
	policy := func(issuers, proxies string) string {
		return fmt.Sprintf(`version: 1
%s
%s
callers:
  - name: anyone
    identities: [{source: mtls, spiffe: spiffe://example.org/agent}]
    scopes: [{exact: u}]
`, issuers, proxies)
	}
	issuers := fmt.Sprintf("issuers: [{issuer: https://file.example, keys: {file: %q}, audiences: [prompt-assembly]}]", keys)
	const proxies = "proxies: [{peer: {spiffe: spiffe://example.org/envoy}, caller: xfcc, trust_domains: [example.org]}]"
	g := serveAccess(t, newCA(t), policy(issuers, proxies), server.Config{})
	token, envoy := g.bearing(t, i.token("agent", nil)), connect(t, g.address, certified(g.ca, exampleID("/envoy")),
		headers{"x-forwarded-client-cert": "URI=" + exampleID("/agent")})
	codesAre := func(byToken, byProxy codes.Code) func() bool {
		return func() bool {
			_, first := callBytes(t, token, "ListTokenizers", nil)
			_, second := callBytes(t, envoy, "ListTokenizers", nil)
			return status.Code(first) == byToken && status.Code(second) == byProxy
		}
	}
	if !codesAre(codes.OK, codes.OK)() {
		t.Fatal("a token, or a header of a proxy, is not believed")
	}
	testca.Write(t, g.policy, []byte(policy("", proxies)))
	eventually(t, "tokens are not believed", codesAre(codes.Unauthenticated, codes.OK))
	testca.Write(t, g.policy, []byte(policy(issuers, "")))
	eventually(t, "the proxy is none, and tokens are believed", codesAre(codes.OK, codes.Unauthenticated))

	// The keys of an issuer are replaced, whose tokens are remembered.
	other := newIssuer(t, "https://file.example")
	testca.Write(t, keys, other.keys)
	eventually(t, "the token of the old key is not believed", codesAre(codes.Unauthenticated, codes.Unauthenticated))
	if _, err := callBytes(t, g.bearing(t, other.token("agent", nil)), "ListTokenizers", nil); err != nil {
		t.Errorf("a token of the new key: %v", err)
	}
	testca.Write(t, keys, []byte("{"))
	eventually(t, "broken keys are a problem", func() bool { return len(g.access.Problems()) == 1 && g.value(t, problems) == 1 })
	if _, err := callBytes(t, g.bearing(t, other.token("agent", nil)), "ListTokenizers", nil); err != nil {
		t.Errorf("a token of the key before the file broke: %v", err)
	}
	testca.Write(t, keys, i.keys)
	eventually(t, "the first key is back", func() bool { return len(g.access.Problems()) == 0 && codesAre(codes.OK, codes.Unauthenticated)() })
}

// A policy that identifies nobody is refused when it is opened, and when it is reloaded.
func TestAccessOfNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	testca.Write(t, path, []byte(agentMay("    scopes: [{exact: u}]\n")))
	if _, err := server.OpenAccess(t.Context(), server.AccessConfig{Policy: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want an error that names the file", err)
	}
	i := newIssuer(t, "https://file.example")
	g := serveAccess(t, nil, strings.Replace(agentMay("    scopes: [{exact: u}]\n"), "callers:",
		fmt.Sprintf("issuers: [{issuer: https://file.example, keys: {file: %q}, audiences: [prompt-assembly]}]\ncallers:", i.file()), 1), server.Config{})
	conn := g.bearing(t, i.token("agent", nil))
	testca.Write(t, g.policy, []byte(agentMay("    scopes: [{exact: u}]\n")))
	eventually(t, "there is a problem", func() bool { return len(g.access.Problems()) == 1 })
	if _, err := callBytes(t, conn, "ListTokenizers", nil); err != nil {
		t.Errorf("the policy that was in force is not any more: %v", err)
	}
}
