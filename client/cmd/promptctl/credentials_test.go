package main

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/promptassembly/promptassembly/client/internal/testca"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

const serverID = "spiffe://example.org/server"

// refused is the status of a refusal.
func refused(code codes.Code, reason string, about map[string]string) error {
	st, err := status.New(code, "refused").WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "promptassembly", Metadata: about})
	if err != nil {
		panic(err) // the arguments are constants
	}
	return st.Err()
}

// who returns the name of the caller, by its certificate or its token; empty if it has neither.
func who(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
		return info.State.PeerCertificates[0].Subject.CommonName
	}
	header, _ := metadata.FromIncomingContext(ctx)
	return strings.TrimPrefix(strings.Join(header.Get("authorization"), " and "), "Bearer ")
}

// strict answers the harness, refuses the agent, and wants to know who calls.
type strict struct {
	pb.UnimplementedPromptAssemblyServiceServer
}

func (strict) check(ctx context.Context) error {
	switch name := who(ctx); name {
	case "":
		return refused(codes.Unauthenticated, "IDENTITY_MISSING", nil)
	case "harness":
		return nil
	default:
		return refused(codes.PermissionDenied, "AUTHORITY_NOT_PERMITTED", map[string]string{
			"path": "candidates[0].authority", "identity": name, "authority": "AUTHORITY_CURRENT_TURN",
		})
	}
}

func (s strict) SelectMemory(ctx context.Context, _ *pb.SelectMemoryRequest) (*pb.SelectMemoryResponse, error) {
	return &pb.SelectMemoryResponse{Plan: &pb.MemoryContextPlan{Context: "for " + who(ctx)}}, s.check(ctx)
}

func (s strict) PlanPrompt(ctx context.Context, _ *pb.PlanPromptRequest) (*pb.PlanPromptResponse, error) {
	return nil, s.check(ctx)
}

func (s strict) ListTokenizers(ctx context.Context, _ *pb.ListTokenizersRequest) (*pb.ListTokenizersResponse, error) {
	return &pb.ListTokenizersResponse{}, s.check(ctx)
}

// serveStrict runs a strict server, which wants to know who asks for its health too.
func serveStrict(t *testing.T, config *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts := []grpc.ServerOption{grpc.StreamInterceptor(
		func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if who(stream.Context()) == "" {
				return refused(codes.Unauthenticated, "IDENTITY_MISSING", nil)
			}
			return next(srv, stream)
		})}
	if config != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(config)))
	}
	srv := grpc.NewServer(opts...)
	pb.RegisterPromptAssemblyServiceServer(srv, strict{})
	healthy := health.NewServer()
	healthy.SetServingStatus(pb.PromptAssemblyService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(srv, healthy)
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(srv.Stop)
	return listener.Addr().String()
}

// secrets are files of one authority.
type secrets struct {
	ca             *testca.CA
	folder, caFile string
}

func newSecrets(t *testing.T) *secrets {
	s := &secrets{ca: testca.New(t), folder: t.TempDir()}
	s.caFile = s.write(t, "ca.pem", s.ca.PEM())
	return s
}

func (s *secrets) write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(s.folder, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate returns the flags that show a certificate for name.
func (s *secrets) certificate(t *testing.T, name string) []string {
	t.Helper()
	certificate, key := s.ca.Issue(t, name)
	return []string{"--cert", s.write(t, name+".pem", certificate), "--key", s.write(t, name+".key", key)}
}

func (s *secrets) token(t *testing.T, text string) []string {
	return []string{"--token-file", s.write(t, text+".token", []byte(text+"\n"))}
}

func TestCredentials(t *testing.T) {
	s := newSecrets(t)
	asks := &tls.Config{ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{s.ca.Certificate(t, "127.0.0.1")}}
	named := &tls.Config{Certificates: []tls.Certificate{s.ca.Certificate(t, "example.com")}}
	spiffe := &tls.Config{Certificates: []tls.Certificate{s.ca.Certificate(t, serverID)}}
	insists := asks.Clone()
	insists.ClientAuth, insists.ClientCAs = tls.RequireAndVerifyClientCert, s.ca.Pool()
	asksAt, namedAt, spiffeAt, insistsAt, plainAt := serveStrict(t, asks), serveStrict(t, named),
		serveStrict(t, spiffe), serveStrict(t, insists), serveStrict(t, nil)

	ca := []string{"--ca", s.caFile}
	harness, agent := s.certificate(t, "harness"), s.certificate(t, "agent")
	harnessToken := s.token(t, "harness")
	const (
		missing = "promptctl: UNAUTHENTICATED (IDENTITY_MISSING): refused\n" +
			"  say who calls with --cert and --key, or with --token-file\n"
		forbidden = "promptctl: PERMISSION_DENIED (AUTHORITY_NOT_PERMITTED): refused\n" +
			"  authority: AUTHORITY_CURRENT_TURN\n" +
			"  identity: agent\n" +
			"  path: candidates[0].authority\n"
	)
	for name, test := range map[string]struct {
		address string
		flags   [][]string
		stderr  string // empty: it is answered; a text that ends in … begins stderr
	}{
		"a certificate":              {asksAt, [][]string{ca, harness}, ""},
		"another certificate":        {asksAt, [][]string{ca, agent}, forbidden},
		"no certificate":             {asksAt, [][]string{ca}, missing},
		"a token":                    {asksAt, [][]string{ca, harnessToken}, ""},
		"another token":              {asksAt, [][]string{ca, s.token(t, "agent")}, forbidden},
		"a token in plaintext":       {plainAt, [][]string{harnessToken}, ""},
		"plaintext":                  {plainAt, nil, missing},
		"a server's name":            {namedAt, [][]string{ca, harnessToken, {"--server-name", "example.com"}}, ""},
		"another name":               {namedAt, [][]string{ca, harnessToken}, "promptctl: UNAVAILABLE: …"},
		"a server's ID":              {spiffeAt, [][]string{ca, harnessToken, {"--server-id", serverID}}, ""},
		"another ID":                 {spiffeAt, [][]string{ca, harnessToken, {"--server-id", serverID + "2"}}, "promptctl: UNAVAILABLE: …"},
		"a verified certificate":     {insistsAt, [][]string{ca, harness}, ""},
		"a certificate is wanted":    {insistsAt, [][]string{ca}, "promptctl: UNAVAILABLE: …"},
		"plaintext to TLS":           {asksAt, nil, "promptctl: UNAVAILABLE: …"},
		"the system's authorities":   {asksAt, [][]string{{"--server-name", "127.0.0.1"}}, "promptctl: UNAVAILABLE: …"},
		"a token in the open":        {"192.0.2.1:50051", [][]string{harnessToken}, "promptctl: UNAUTHENTICATED: client: a token goes over TLS, …"},
		"all that a server may want": {insistsAt, [][]string{ca, harness, harnessToken}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"select", "-o", "table", "--server", test.address}
			for _, flags := range test.flags {
				args = append(args, flags...)
			}
			got := promptctl(t, "{}", args...)
			begin, open := strings.CutSuffix(test.stderr, "…")
			if open && !strings.HasPrefix(got.stderr, begin) || !open && got.stderr != test.stderr {
				t.Errorf("stderr\n%swant\n%s", got.stderr, test.stderr)
			}
			if want := min(len(test.stderr), 1); got.status != want {
				t.Errorf("status %d, want %d", got.status, want)
			}
		})
	}

	// Every command that calls a server has the flags.
	for _, args := range [][]string{{"select", "--jsonl"}, {"plan"}, {"eval", "-"}, {"demo"}} {
		args = append(append(append(args, "--server", asksAt), ca...), agent...)
		if got := promptctl(t, "{}\n", args...); !strings.Contains(got.stdout+got.stderr, "AUTHORITY_NOT_PERMITTED") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// A run over many lines ends where none can be sent, and goes on where each is refused.
func TestCredentialsOfManyLines(t *testing.T) {
	s := newSecrets(t)
	for _, args := range [][]string{{"select", "--jsonl"}, {"eval", "-"}} {
		got := promptctl(t, "{}\n{}\n", append(append(args, "--server", "192.0.2.1:50051"), s.token(t, "harness")...)...)
		if got.status != 1 || !strings.HasPrefix(got.stderr, "promptctl: cannot call 192.0.2.1:50051: client: a token goes over TLS, ") {
			t.Errorf("%q: %+v", args, got)
		}
		got = promptctl(t, "{}\n{}\n", append(args, "--server", serveStrict(t, nil))...)
		if got.status != 0 || !strings.Contains(got.stdout+got.stderr, "2 refused") || !strings.Contains(got.stdout+got.stderr, "IDENTITY_MISSING") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	s := newSecrets(t)
	harness := s.certificate(t, "harness")
	certificate, key := harness[1], harness[3]
	otherKey := s.certificate(t, "other")[3]
	none := filepath.Join(s.folder, "none")
	words := s.write(t, "words", []byte("two secrets"))
	for name, test := range map[string]struct {
		flags []string
		want  string
	}{
		"no key":             {[]string{"--cert", certificate}, "--cert needs --key"},
		"no certificate":     {[]string{"--key", key}, "--key needs --cert"},
		"empty CA":           {[]string{"--ca", ""}, "--ca is empty"},
		"empty certificate":  {[]string{"--cert", "", "--key", key}, "--cert is empty"},
		"empty key":          {[]string{"--cert", certificate, "--key", ""}, "--key is empty"},
		"empty token file":   {[]string{"--token-file", ""}, "--token-file is empty"},
		"empty name":         {[]string{"--server-name", ""}, "--server-name is empty"},
		"empty ID":           {[]string{"--server-id", ""}, "--server-id is empty"},
		"two names":          {[]string{"--ca", s.caFile, "--server-name", "x", "--server-id", serverID}, "--server-name cannot go with --server-id"},
		"an ID of no CA":     {[]string{"--server-id", serverID}, "--server-id needs --ca"},
		"no ID":              {[]string{"--ca", s.caFile, "--server-id", "example.org"}, `--server-id must be like spiffe://example.org/name, not "example.org"`},
		"a trust domain":     {[]string{"--ca", s.caFile, "--server-id", "spiffe://example.org"}, "--server-id must be like"},
		"no such CA":         {[]string{"--ca", none}, none + ": no such file or directory"},
		"no authority":       {[]string{"--ca", key}, key + ": it holds no certificate in PEM form"},
		"the key of another": {[]string{"--cert", certificate, "--key", otherKey}, certificate + ": with the key " + otherKey},
		"no such token file": {[]string{"--token-file", none}, none + ": no such file or directory"},
		"no token":           {[]string{"--token-file", words}, words + ": it holds more than a token"},
	} {
		t.Run(name, func(t *testing.T) {
			got := promptctl(t, "{}", append([]string{"plan", "--server", "localhost:1"}, test.flags...)...)
			headline, hint, _ := strings.Cut(got.stderr, "\n")
			if got.status != 2 || got.stdout != "" || !strings.HasPrefix(headline, "promptctl: "+test.want) ||
				hint != "See 'promptctl plan --help'.\n" || strings.Contains(got.stderr, "secret") {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
	for _, flags := range [][]string{
		{"--ca", s.caFile}, {"--cert", certificate, "--key", key}, {"--token-file", words}, {"--server-name", "x"}, {"--server-id", serverID},
	} {
		got := promptctl(t, "{}", append([]string{"plan"}, flags...)...)
		if want := "promptctl: " + flags[0] + " needs --server: "; got.status != 2 || !strings.HasPrefix(got.stderr, want) {
			t.Errorf("%q: %+v, want %q", flags, got, want)
		}
	}
}

// Files are what the flags for files complete to, and nothing else.
func TestCompletionOfCredentials(t *testing.T) {
	for flag, want := range map[string]string{
		"--ca": ":0\n", "--cert": ":0\n", "--key": ":0\n", "--token-file": ":0\n",
		"--server": ":4\n", "--server-name": ":4\n", "--server-id": ":4\n",
	} {
		for _, command := range []string{"select", "plan", "demo", "eval"} {
			if got := promptctl(t, "", "__complete", command, flag, ""); got.stdout != want {
				t.Errorf("%s %s completes to %q, want %q", command, flag, got.stdout, want)
			}
		}
	}
}
