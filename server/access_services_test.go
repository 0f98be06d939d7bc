package server_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/promptassembly/promptassembly/server"
)

// otherCalls are calls of what is not the service's own, each until its first answer.
var otherCalls = map[string]func(context.Context, *grpc.ClientConn) error{
	"health check": func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, new(healthpb.HealthCheckRequest))
		return err
	},
	"health list": func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := healthpb.NewHealthClient(conn).List(ctx, new(healthpb.HealthListRequest))
		return err
	},
	"health watch": func(ctx context.Context, conn *grpc.ClientConn) error {
		stream, err := healthpb.NewHealthClient(conn).Watch(ctx, new(healthpb.HealthCheckRequest))
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	},
	"reflection": func(ctx context.Context, conn *grpc.ClientConn) error {
		stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		if err != nil {
			return err
		}
		_ = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{ // Recv says why it fails
			MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
		})
		_, err = stream.Recv()
		return err
	},
	"old reflection": func(ctx context.Context, conn *grpc.ClientConn) error {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
		if err != nil {
			return err
		}
		_ = stream.SendMsg(&grpc_reflection_v1.ServerReflectionRequest{ // the same bytes
			MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
		})
		return stream.RecvMsg(new(grpc_reflection_v1.ServerReflectionResponse))
	},
}

// unknownMethods are of this service and of none. Those without a second slash are answered by gRPC itself,
// before there is a call.
var unknownMethods = []string{servicePath + "Other", servicePath, "/other.Service/Method", "//"}

// Whoever is identified may use health checks and reflection, named by the policy or not, and nobody else
// may. Who is not learns nothing of which methods there are.
func TestAccessOfOtherServices(t *testing.T) {
	files := newIssuer(t, "https://file.example")
	g := serveAccess(t, newCA(t), `version: 1
issuers: [{issuer: https://file.example, keys: {file: "`+files.file()+`"}, audiences: [prompt-assembly]}]
proxies: [{peer: {spiffe: spiffe://example.org/envoy}, caller: xfcc, trust_domains: [example.org]}]
callers: [{name: agent, identities: [{source: mtls, spiffe: spiffe://example.org/agent}], scopes: [{exact: u}]}]
`, server.Config{})
	none := certified(g.ca)
	missing := refused{codes.Unauthenticated, "IDENTITY_MISSING", nil}
	invalid := refused{codes.Unauthenticated, "IDENTITY_INVALID", nil}
	stranger := newCA(t).Issue(spec(exampleID("/agent"))).TLS
	untrusted := certified(g.ca)
	untrusted.Certificates = list(stranger)
	for name, test := range map[string]struct {
		conn *grpc.ClientConn
		want refused
	}{
		"a certificate":          {g.as(t, exampleID("/nobody")), refused{}},
		"a token":                {g.bearing(t, files.token("nobody", nil)), refused{}},
		"a header of a proxy":    {connect(t, g.proxy(t, exampleID("/envoy"), true), certified(g.ca, exampleID("/nobody")), nil), refused{}},
		"nothing":                {connect(t, g.address, none, nil), missing},
		"the proxy itself":       {g.as(t, exampleID("/envoy")), missing},
		"an expired token":       {g.bearing(t, files.token("nobody", map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})), invalid},
		"an unknown authority":   {connect(t, g.address, untrusted, nil), invalid},
		"a header of no proxy":   {connect(t, g.address, certified(g.ca, exampleID("/agent")), headers{"x-forwarded-client-cert": "URI=" + exampleID("/harness")}), invalid},
		"a header of nobody":     {connect(t, g.address, none, headers{"x-forwarded-client-cert": "URI=" + exampleID("/harness")}), invalid},
		"a token beside another": {connect(t, g.address, certified(g.ca, exampleID("/agent")), bearer(files.token("agent", nil))), invalid},
	} {
		t.Run(name, func(t *testing.T) {
			for call, do := range otherCalls {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				checkRefused(t, call, do(ctx, test.conn), test.want)
				cancel()
			}
			_, err := callBytes(t, test.conn, "ListTokenizers", nil)
			checkRefused(t, "ListTokenizers", err, test.want)
			for _, method := range unknownMethods {
				err := test.conn.Invoke(t.Context(), method, new(emptypb.Empty), new(emptypb.Empty))
				want := test.want
				if want.code == codes.OK {
					checkCode(t, err, codes.Unimplemented)
					continue
				}
				checkRefused(t, method, err, want)
			}
		})
	}
}
