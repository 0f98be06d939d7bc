package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// The record of a call says who called, or which check failed, and so do the metrics; no token, claim
// or certificate shows in them.
func TestAccessIsObserved(t *testing.T) {
	i := newIssuer(t, "https://file.example")
	g := serveAccess(t, newCA(t), fmt.Sprintf(`version: 1
issuers:
  - {issuer: https://file.example, keys: {file: %[1]q}, audiences: [prompt-assembly], claims: [/tenant]}
  - {spiffe_trust_domain: example.org, keys: {file: %[1]q}, audiences: [prompt-assembly]}
proxies: [{peer: {spiffe: spiffe://example.org/envoy}, caller: xfcc, trust_domains: [example.org]}]
callers:
  - name: agent
    identities: [{source: jwt, issuer: https://file.example, subject: agent}]
    scopes: [{exact: u}, {exact: "t/{claim:/tenant}", separator: /}]
`, i.file()), server.Config{CallLog: server.CallLog{Scope: server.ScopePlain}})
	secret := map[string]any{"tenant": canary, "email": canary}
	with := func(more map[string]any) map[string]any {
		more["email"] = canary
		return more
	}
	held, late := i.token("agent", secret), i.token(canary, with(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}))
	other, svid := i.token(canary, with(map[string]any{"aud": canary})), i.token(exampleID("/agent"), with(map[string]any{"iss": nil}))
	none, agent := certified(g.ca), exampleID("/agent")
	stranger := certified(g.ca)
	stranger.Certificates = list(testca.New(t, canary).Issue(testca.Spec{
		URIs: list(exampleID("/" + canary)), DNSNames: list(canary),
	}).TLS)
	marked := certified(g.ca)
	marked.Certificates = list(g.ca.Issue(testca.Spec{URIs: list(agent), DNSNames: list(canary)}).TLS)

	const missing, invalid, denied = "IDENTITY_MISSING", "IDENTITY_INVALID", "SCOPE_NOT_PERMITTED"
	who := func(source, issuer, name string) map[string]any {
		return map[string]any{"identity": name, "identity_source": source, "identity_issuer": issuer}
	}
	failed := func(source, check string) map[string]any {
		return map[string]any{"refused_source": source, "refused_check": check}
	}
	calls := []struct {
		name   string
		conn   *grpc.ClientConn
		reason string
		record map[string]any // of what is about identities
	}{
		{"a token", g.bearing(t, held), "", who("jwt", "https://file.example", "agent")},
		{"a certificate", connect(t, g.address, marked, nil), denied, who("mtls", "example.org", agent)},
		{"both", connect(t, g.address, marked, bearer(svid)), denied, who("mtls", "example.org", agent)},
		{"a token of SPIFFE", g.bearing(t, svid), denied, who("jwt", "example.org", agent)},
		{"a proxy", connect(t, g.proxy(t, exampleID("/envoy"), true), marked, nil), denied, who("xfcc", "example.org", agent)},
		{"nothing", connect(t, g.address, none, nil), missing, map[string]any{}},
		{"the proxy itself", g.as(t, exampleID("/envoy")), missing, map[string]any{}},
		{"an expired token", g.bearing(t, late), invalid, failed("jwt", "expired")},
		{"another audience", g.bearing(t, other), invalid, failed("jwt", "audience")},
		{"no token", g.bearing(t, canary), invalid, failed("jwt", "malformed")},
		{"an unknown authority", connect(t, g.address, stranger, nil), invalid, failed("mtls", "not trusted")},
		{
			"a header of no proxy", connect(t, g.address, none, headers{"x-forwarded-client-cert": "URI=" + exampleID("/"+canary)}),
			invalid, failed("xfcc", "not from a proxy"),
		},
		{
			"a header that is none", connect(t, g.address, certified(g.ca, exampleID("/envoy")), headers{"x-forwarded-client-cert": canary}),
			invalid, failed("xfcc", "malformed"),
		},
		{"two that disagree", connect(t, g.address, marked, bearer(held)), invalid, failed("jwt", "disagrees with the certificate")},
	}
	want := make(map[string]float64)
	for n, call := range calls {
		r := &pb.SelectMemoryRequest{UserScope: "u", Candidates: list(candidate("m", canary))}
		err := invoke(t.Context(), t, call.conn, r, nil)
		info, _ := refusalOf(err)
		if info.GetReason() != call.reason {
			t.Errorf("%s: %v, want %q", call.name, err, call.reason)
		}
		if call.reason != "" {
			want["promptassembly_refusals_total "+call.reason]++
		}
		if source := call.record["refused_source"]; source != nil {
			want[fmt.Sprintf("promptassembly_identity_refusals_total %v %v", call.record["refused_check"], source)]++
		}
		eventually(t, "the call is logged", func() bool { return len(g.lines(t)) == n+1 })
		got := make(map[string]any)
		for key, value := range g.lines(t)[n] {
			if strings.HasPrefix(key, "identity") || strings.HasPrefix(key, "refused") {
				got[key] = value
			}
		}
		if diff := gocmp.Diff(call.record, got); diff != "" {
			t.Errorf("%s: the record (-want +got):\n%s", call.name, diff)
		}
		if scope := g.lines(t)[n]["scope"]; call.reason != missing && call.reason != invalid && scope != "u" {
			t.Errorf("%s: the record has the scope %v", call.name, scope)
		} else if (call.reason == missing || call.reason == invalid) && scope != nil {
			t.Errorf("%s: the request was looked at: scope %v", call.name, scope)
		}
	}
	got := make(map[string]float64)
	var seen strings.Builder
	for series, value := range g.values(t) {
		if strings.Contains(series, "refusals_total") {
			got[series] = value
		}
		fmt.Fprintln(&seen, series)
		if strings.Contains(series, "agent") {
			t.Errorf("the metric %s has an identity", series)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	fmt.Fprintln(&seen, g.log, g.accessLog, g.access.Problems())
	for _, token := range list(held, late, other, svid) {
		for part := range strings.SplitSeq(token, ".") {
			if strings.Contains(seen.String(), part) {
				t.Errorf("a part of a token shows in\n%s", &seen)
			}
		}
	}
	if strings.Contains(seen.String(), "canary") {
		t.Errorf("what a token or certificate holds shows in\n%s", &seen)
	}
}
