package server_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/promptassembly/promptassembly/server"
)

// matrixPolicy is the policy of the matrix, but for the issuers and proxies.
const matrixPolicy = `
callers:
  - name: harness
    identities:
      - {source: mtls, spiffe: spiffe://example.org/harness}
      - {source: xfcc, spiffe: spiffe://example.org/harness}
      - {source: jwt, issuer: https://file.example, subject: harness}
      - {source: jwt, issuer: https://url.example, subject: harness}
    authorities: [workspace_override, current_turn]
    required: [base_instructions, identity]
    scopes:
      - {exact: "user:mei"}
      - {prefix: team/a, separator: /, authorities: [workspace_override], required: [base_instructions]}
    bounds: {min_score: 0.4, top_k: 4, max_chars: 2000, max_tokens: 700}
  - name: agent
    identities:
      - {source: mtls, spiffe: spiffe://example.org/agent}
      - {source: xfcc, spiffe: spiffe://example.org/agent}
      - {source: jwt, issuer: https://file.example, subject: agent}
      - {source: jwt, issuer: https://url.example, subject: agent}
    scopes:
      - {exact: "user:mei"}
      - {prefix: team/a, separator: /}
  - name: tenants
    identities:
      - {source: mtls, spiffe: "spiffe://example.org/tenant/{tenant}/*"}
      - {source: xfcc, spiffe: "spiffe://example.org/tenant/{tenant}/*"}
      - {source: jwt, spiffe: "spiffe://example.org/tenant/{tenant}/*"}
      - {source: jwt, spiffe: "spiffe://url.example/tenant/{tenant}/*"}
    authorities: [workspace_override]
    required: [identity]
    scopes:
      - {exact: "tenant/{tenant}", separator: /}
      - {prefix: "team/{tenant}", separator: /, authorities: [workspace_override, current_turn]}
    bounds: {top_k: 4}
  - name: clerks
    identities:
      - {source: jwt, issuer: https://file.example, subject: clerk}
      - {source: jwt, issuer: https://url.example, subject: clerk}
    authorities: [current_turn]
    required: [base_instructions]
    scopes:
      - {exact: "tenant/{claim:/org/tenant}", separator: /}
      - {prefix: "team/{claim:/org/tenant}", separator: /, authorities: [], required: []}
    bounds: {min_score: 0.4, max_tokens: 700}
`

// matrixCallers are the callers of the matrix.
var matrixCallers = map[string]entitled{
	"harness": {
		own: "user:mei", others: "user:eve",
		atLarge: rights{list(workspace, turn), list(baseKind, whoKind)},
		below:   rights{list(workspace), list(baseKind)},
		bounds:  map[string]string{"min_score": "0.4", "top_k": "4", "max_chars": "2000", "max_tokens": "700"},
	},
	"agent":   {own: "user:mei", others: "user:eve"},
	"unnamed": {unnamed: true, own: "user:mei", others: "user:eve"},
	"tenant": {
		own: "tenant/a", others: "tenant/b",
		atLarge: rights{list(workspace), list(whoKind)},
		below:   rights{list(workspace, turn), list(whoKind)},
		bounds:  map[string]string{"top_k": "4"},
	},
	"clerk": { // who is one by a claim
		own: "tenant/a", others: "tenant/b",
		atLarge: rights{list(turn), list(baseKind)},
		bounds:  map[string]string{"min_score": "0.4", "max_tokens": "700"},
	},
}

func list[T any](of ...T) []T { return of }

// arrangement is a server by every transport.
type arrangement struct {
	t         *testing.T
	tls, open *guarded // open is without TLS
	file, url *issuer
	envoy     string // addresses of proxies that name the caller in a header, and by its token
	edge      string
	byXFCC    string // unix sockets on which this process is such a proxy
	byJWT     string
}

func arrange(t *testing.T) *arrangement {
	a := &arrangement{t: t, file: newIssuer(t, "https://file.example"), url: newIssuer(t, "https://url.example")}
	issuers := fmt.Sprintf(`version: 1
issuers:
  - {issuer: https://file.example, keys: {file: %[1]q}, audiences: [prompt-assembly], claims: [/org/tenant]}
  - {issuer: https://url.example, keys: {url: %[2]q}, audiences: [prompt-assembly], claims: [/org/tenant]}
  - {spiffe_trust_domain: example.org, keys: {file: %[1]q}, audiences: [prompt-assembly]}
  - {spiffe_trust_domain: url.example, keys: {url: %[2]q}, audiences: [prompt-assembly]}
proxies:
  - {peer: {spiffe: "spiffe://example.org/envoy"}, caller: xfcc, trust_domains: [example.org]}
  - {peer: {spiffe: "spiffe://example.org/edge"}, caller: jwt}
`, a.file.file(), a.url.url())
	unix := func(names string) string {
		peer := fmt.Sprintf("  - {peer: {unix_uid: %d}, caller: %s}\n", os.Getuid(), names)
		return serveAccess(t, nil, issuers+peer+matrixPolicy, server.Config{}).serveUnix(t)
	}
	a.tls = serveAccess(t, newCA(t), issuers+matrixPolicy, server.Config{})
	a.envoy, a.edge = a.tls.proxy(t, exampleID("/envoy"), true), a.tls.proxy(t, exampleID("/edge"), false)
	a.open = serveAccess(t, nil, issuers+matrixPolicy, server.Config{})
	if runtime.GOOS == "linux" {
		a.byXFCC, a.byJWT = unix("xfcc, trust_domains: [example.org]"), unix("jwt")
	}
	return a
}

// spiffeIDs and subjects are the verified names of the callers; the clerk has no certificate.
var (
	spiffeIDs = map[string]string{
		"harness": "spiffe://example.org/harness", "agent": "spiffe://example.org/agent",
		"unnamed": "spiffe://example.org/nobody", "tenant": "spiffe://example.org/tenant/a/worker",
	}
	subjects = map[string]string{"harness": "harness", "agent": "agent", "unnamed": "nobody", "clerk": "clerk"}
)

// connections returns one to every transport for a caller, and the name by which it is known there.
func (a *arrangement) connections(who string) map[string]named {
	a.t.Helper()
	all := make(map[string]named)
	add := func(transport, name, target string, as *tls.Config, with headers) {
		all[transport] = named{connect(a.t, target, as, with), name}
	}
	id := spiffeIDs[who]
	if id != "" {
		certificate := certified(a.tls.ca, id)
		add("mTLS", id, a.tls.address, certificate, nil)
		add("XFCC of a proxy", id, a.envoy, certificate, headers{"x-forwarded-client-cert": "URI=spiffe://example.org/harness"})
	}
	byFile, byURL, token, other := subjects[who], subjects[who], "", ""
	if byFile == "" { // by tokens of SPIFFE
		byFile, byURL = id, strings.Replace(id, "example.org", "url.example", 1)
		token, other = a.file.token(byFile, map[string]any{"iss": nil}), a.url.token(byURL, map[string]any{"iss": nil})
	} else {
		tenant := map[string]any{"org": map[string]any{"tenant": "a"}}
		token, other = a.file.token(byFile, tenant), a.url.token(byURL, tenant)
	}
	add("JWT by a file", byFile, a.tls.address, certified(a.tls.ca), bearer(token))
	add("JWT by a URL", byURL, a.tls.address, certified(a.tls.ca), bearer(other))
	add("JWT on loopback", byURL, a.open.address, nil, bearer(other))
	add("JWT of a proxy", byFile, a.edge, certified(a.tls.ca, exampleID("/client")), bearer(token))
	if runtime.GOOS == "linux" {
		add("JWT of a unix proxy", byURL, a.byJWT, nil, bearer(other))
		if id != "" {
			add("XFCC of a unix proxy", id, a.byXFCC, nil, headers{"x-forwarded-client-cert": "URI=" + id})
		}
	}
	return all
}

// named is a connection, and who uses it.
type named struct {
	*grpc.ClientConn
	identity string
}

// Whoever calls, by whatever transport, may assert what the policy gives it, is refused anything else, and
// gets the answers of a server that trusts everybody.
func TestAccessMatrix(t *testing.T) {
	a, trusting := arrange(t), start(t)
	for who, may := range matrixCallers {
		all := cells(t, may)
		answers := make([][]byte, len(all))
		for i, c := range all {
			var err error
			if answers[i], err = callBytes(t, trusting, c.method, c.encoded); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		for transport, conn := range a.connections(who) {
			t.Run(who+"/"+transport, func(t *testing.T) {
				var calls sync.WaitGroup
				defer calls.Wait()
				every := 1
				if transport == "JWT on loopback" || transport == "JWT of a proxy" || may.unnamed && transport != "mTLS" {
					every = 7 // a sample: for the rest there are others like it
				}
				const several = 4
				for from := range several {
					calls.Go(func() {
						for i := from * every; i < len(all); i += several * every {
							got, err := callBytes(t, conn.ClientConn, all[i].method, all[i].encoded)
							checkRefused(t, all[i].name, err, may.expect(conn.identity, all[i]))
							if err == nil && !bytes.Equal(got, answers[i]) {
								t.Errorf("%s: another answer than without access control", all[i].name)
							}
						}
					})
				}
			})
		}
	}
	if text := a.tls.accessLog.String(); strings.Contains(text, "not reloaded") {
		t.Error(text)
	}
}

// checkRefused checks the whole of a refusal, or that there is none.
func checkRefused(t testing.TB, name string, err error, want refused) {
	t.Helper()
	info, _ := refusalOf(err)
	s := status.Convert(err)
	if s.Code() != want.code || info.GetReason() != want.reason {
		t.Errorf("%s: %v %s %v, want %v %s %v", name, s.Code(), info.GetReason(), info.GetMetadata(), want.code, want.reason, want.metadata)
		return
	}
	if want.code == codes.OK {
		return
	}
	if diff := gocmp.Diff(want.metadata, info.GetMetadata()); diff != "" {
		t.Errorf("%s: metadata (-want +got):\n%s", name, diff)
	}
	if info.GetDomain() != "promptassembly" || s.Message() == "" || proto.Size(s.Proto()) > maxStatusBytes {
		t.Errorf("%s: %v", name, s.Proto())
	}
}
