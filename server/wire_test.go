package server_test

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/promptassembly/promptassembly/server"
)

// start serves a server in memory for the length of the test and returns a connection to it.
func start(t testing.TB) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	s := server.New(server.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)

	conn, err := grpc.NewClient("passthrough:///in-memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

const servicePath = "/promptassembly.v1.PromptAssemblyService/"

// callBytes calls a method with a message that is already encoded and returns the encoded answer.
func callBytes(t testing.TB, conn *grpc.ClientConn, method string, request []byte) ([]byte, error) {
	t.Helper()
	var answer []byte
	err := conn.Invoke(t.Context(), servicePath+method, request, &answer, grpc.ForceCodecV2(rawCodec{}))
	return answer, err
}

// rawCodec passes bytes through.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return grpcproto.Name }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// refusalOf returns the details of a refusal; nil for those it does not carry.
func refusalOf(err error) (info *errdetails.ErrorInfo, violations []*errdetails.BadRequest_FieldViolation) {
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.BadRequest:
			violations = d.GetFieldViolations()
		}
	}
	return info, violations
}

// checkCode checks the status code of an answer.
func checkCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("answered with %v, want %v", err, want)
	}
}
