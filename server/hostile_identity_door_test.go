package server_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

// hostilePolicy names one harness, by its certificate and by a token, and one agent of a proxy.
const hostilePolicy = `version: 1
issuers:
  - issuer: https://idp.test
    keys: {file: "DIR/idp.jwks"}
    audiences: [prompt-assembly]
  - issuer: https://other.test
    keys: {file: "DIR/other.jwks"}
    audiences: [prompt-assembly]
  - spiffe_trust_domain: example.org
    keys: {file: "DIR/svid.jwks"}
    audiences: [prompt-assembly]
proxies:
  - peer: {spiffe: "spiffe://example.org/proxy"}
    caller: xfcc
    trust_domains: [example.org]
  - peer: {spiffe: "spiffe://example.org/gateway"}
    caller: jwt
callers:
  - name: harness
    identities:
      - {source: mtls, spiffe: "spiffe://example.org/harness"}
      - {source: jwt, issuer: "https://idp.test", subject: harness}
    authorities: [workspace_override, current_turn]
    required: [base_instructions, tool_descriptions, working_mode]
    scopes: [{exact: u}, {prefix: team/a, separator: /}]
  - name: agent
    identities:
      - {source: mtls, spiffe: "spiffe://example.org/agent"}
      - {source: xfcc, spiffe: "spiffe://example.org/agent"}
      - {source: jwt, issuer: "https://other.test", subject: agent}
    scopes: [{exact: u}]
`

const (
	hostileHarness = "spiffe://example.org/harness"
	hostileAgent   = "spiffe://example.org/agent"
	hostileProxy   = "spiffe://example.org/proxy"
	hostileGateway = "spiffe://example.org/gateway"
)

// hostileServer is a server that asks who calls, and what its attackers know and hold.
type hostileServer struct {
	*observed
	dir              string
	ca               *testca.CA // nil: plaintext
	idp, other, svid *hostileIssuer
	fetches          *prometheus.Registry
	said             *lockedBuffer // by what is reloaded
	logged           int           // lines of the log that were looked at
}

// hostileServe serves with hostilePolicy over TLS or in plaintext.
func hostileServe(t testing.TB, secure bool, cfg server.Config) *hostileServer {
	t.Helper()
	f := hostileIssuers(t)
	f.serve(t, secure, hostilePolicy, cfg)
	return f
}

// hostileIssuers returns a server that does not serve yet, and its issuers.
func hostileIssuers(t testing.TB) *hostileServer {
	t.Helper()
	return &hostileServer{
		dir:  t.TempDir(),
		said: new(lockedBuffer), fetches: prometheus.NewRegistry(),
		idp:   newHostileIssuer(t, map[string]any{"iss": "https://idp.test", "sub": "harness"}),
		other: newHostileIssuer(t, map[string]any{"iss": "https://other.test", "sub": "harness"}),
		svid:  newHostileIssuer(t, map[string]any{"sub": hostileHarness}),
	}
}

func (f *hostileServer) serve(t testing.TB, secure bool, policy string, cfg server.Config) {
	t.Helper()
	f.idp.write(f.dir, "idp.jwks")
	f.other.write(f.dir, "other.jwks")
	f.svid.write(f.dir, "svid.jwks")
	access := server.AccessConfig{Policy: f.rule(t, policy), Logger: slog.New(slog.NewTextHandler(f.said, nil)), Metrics: f.fetches}
	if secure {
		f.ca = testca.New(t, "example.org")
		f.ca.Issue(testca.Spec{URIs: []string{"spiffe://example.org/server"}}).WritePEM(f.dir, f.ca)
		access.TLS = server.TLS{
			Certificate: filepath.Join(f.dir, "tls.crt"), Key: filepath.Join(f.dir, "tls.key"),
			ClientCA: filepath.Join(f.dir, "ca.crt"), TrustDomain: "example.org",
		}
	}
	opened, err := server.OpenAccess(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	cfg.Access = opened
	f.observed = observe(t, cfg, false)
}

// rule writes the policy file and returns its path.
func (f *hostileServer) rule(t testing.TB, policy string) string {
	t.Helper()
	path := filepath.Join(f.dir, "policy.yaml")
	testca.Write(t, path, []byte(strings.ReplaceAll(policy, "DIR", filepath.ToSlash(f.dir))))
	return path
}

// tls returns what a client with a certificate, or nil, connects with.
func (f *hostileServer) tls(client *tls.Certificate) *tls.Config {
	cfg := &tls.Config{RootCAs: f.ca.Pool(), ServerName: "127.0.0.1", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}
	if client != nil { // presented whatever the server says that it believes
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return client, nil }
	}
	return cfg
}

// peer connects in whatever way the server is to be reached.
func (f *hostileServer) peer(t testing.TB, client *tls.Certificate) *peer {
	t.Helper()
	if f.ca == nil {
		return dialPeer(t, f.address)
	}
	conn := tls.Client(dialTCP(t, f.address), f.tls(client))
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return greet(t, conn)
}

// client returns gRPC's own client, with a certificate or nil.
func (f *hostileServer) client(t testing.TB, certificate *tls.Certificate) *grpc.ClientConn {
	t.Helper()
	if f.ca == nil {
		return dial(t, f.address)
	}
	conn, err := grpc.NewClient(f.address, grpc.WithTransportCredentials(credentials.NewTLS(f.tls(certificate))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// leaf returns a certificate of the server's authority with names.
func (f *hostileServer) leaf(names ...string) *tls.Certificate {
	return &f.ca.Issue(testca.Spec{URIs: names}).TLS
}

// hostileVerdict is how a call was refused.
type hostileVerdict struct{ reason, source, check string }

var hostileMissing = hostileVerdict{"IDENTITY_MISSING", "", ""}

// refuses makes a call of which only the headers are sent, and checks that it is refused with a verdict
// that the log and the metrics know as well.
func (f *hostileServer) refuses(t *testing.T, p *peer, want hostileVerdict, headers ...string) {
	t.Helper()
	counts := []string{"promptassembly_refusals_total " + want.reason}
	if want.check != "" {
		counts = append(counts, "promptassembly_identity_refusals_total "+want.check+" "+want.source)
	}
	before := f.values(t)
	stream := p.open(false, headersOf(servicePath+"SelectMemory", headers...)...)
	a := p.wait(stream)
	if got := hostileReason(a); a.code() != codes.Unauthenticated || got != want.reason {
		t.Errorf("answered with %v %s, want UNAUTHENTICATED %s", a.code(), got, want.reason)
	}
	line := f.nextCall(t)
	for key, value := range map[string]string{
		"code": "Unauthenticated", "reason": want.reason, "refused_source": want.source, "refused_check": want.check,
		"identity": "", "scope": "", "request_bytes": "0",
	} {
		if got := fmt.Sprint(line[key]); got != value && (value != "" || line[key] != nil) {
			t.Errorf("%s is logged as %s, want %q", key, got, value)
		}
	}
	for i := 1; i < len(headers); i += 2 {
		if len(headers[i]) > 20 && strings.Contains(f.log.String(), headers[i][len(headers[i])-20:]) {
			t.Error("the log holds a part of a header")
		}
	}
	after := f.values(t)
	for _, series := range counts {
		if after[series] != before[series]+1 {
			t.Errorf("%s grew from %.0f to %.0f, want by 1", series, before[series], after[series])
		}
	}
}

// nextCall returns the next record of a call in the log.
func (f *hostileServer) nextCall(t testing.TB) map[string]any {
	t.Helper()
	var line map[string]any
	eventually(t, "the call is logged", func() bool {
		lines := f.lines(t)
		for ; f.logged < len(lines); f.logged++ {
			if line = lines[f.logged]; line["msg"] == "call" {
				f.logged++
				return true
			}
		}
		return false
	})
	return line
}

// hostileReason returns the reason in the details of a refusal.
func hostileReason(a answer) string {
	encoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(a.header["grpc-status-details-bin"], "="))
	s := new(statuspb.Status)
	if err != nil || proto.Unmarshal(encoded, s) != nil {
		return ""
	}
	info, _ := refusalOf(status.FromProto(s).Err())
	return info.GetReason()
}

// hostileClaim is a request that asserts the highest authority.
func hostileClaim(t testing.TB) []byte {
	m := candidate("m", "text")
	m.Authority = pb.Authority_AUTHORITY_CURRENT_TURN
	return marshal(t, &pb.SelectMemoryRequest{UserScope: "u", Candidates: []*pb.MemoryContextCandidate{m}})
}

// answers makes a call that asserts what only the harness may, and checks how it is answered: "" is OK.
func (f *hostileServer) answers(t *testing.T, p *peer, want string, headers ...string) {
	t.Helper()
	stream := p.open(false, headersOf(servicePath+"SelectMemory", headers...)...)
	p.data(stream, true, framed(0, hostileClaim(t)))
	a := p.wait(stream)
	if got := hostileReason(a); got != want || (want == "") != (a.code() == codes.OK) {
		t.Errorf("answered with %v %q, want %q", a.code(), got, want)
	}
	_ = f.nextCall(t)
}

// path is that of a file of the server's folder.
func (f *hostileServer) path(name string) string { return filepath.Join(f.dir, name) }
