package client_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// secretive refuses to tell its health while it is closed.
type secretive struct {
	closed atomic.Bool
	code   codes.Code
}

func (s *secretive) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if s.closed.Load() && info.FullMethod == healthpb.Health_Watch_FullMethodName {
		return failure(s.code, "who are you?", reason("IDENTITY_MISSING"))
	}
	return next(srv, stream)
}

// A caller that may not know how a server is learns from its calls what is wrong.
func TestHealthIsRefused(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied} {
		s := &secretive{code: code}
		s.closed.Store(true)
		listener := listen(t)
		serveFake(t, listener, func(context.Context, int) (*pb.ListTokenizersResponse, error) {
			return nil, failure(codes.Unauthenticated, "x", reason("IDENTITY_MISSING"))
		}, grpc.StreamInterceptor(s.intercept))
		_, err := list(t.Context(), dial(t, []string{listener.Addr().String()}))
		failed := failedWith(t, err, codes.Unauthenticated)
		if failed.Reason != pb.ErrorReason_ERROR_REASON_IDENTITY_MISSING || failed.Attempts != 1 {
			t.Errorf("got %+v", failed)
		}
	}
}

// A server that refuses to tell its health gets calls only while no other is there.
func TestHealthIsRefusedByOne(t *testing.T) {
	s := &secretive{code: codes.Unauthenticated}
	s.closed.Store(true)
	listener := listen(t)
	serveFake(t, listener, func(context.Context, int) (*pb.ListTokenizersResponse, error) { return good("secretive"), nil },
		grpc.StreamInterceptor(s.intercept))
	_, open := answering(t, "open")
	c := dial(t, []string{listener.Addr().String(), open})
	for answer := good(""); answer.GetUnicodeVersion() != "open"; { // until then it may be the only one there
		time.Sleep(time.Millisecond) // the servers note a bounded number of calls
		var err error
		if answer, err = list(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if got := answers(t, c, "open"); got["open"] != 60 {
		t.Errorf("of 60 calls %v, want all from the one that tells", got)
	}
	s.closed.Store(false) // it is asked again after a while
	if got := answers(t, c, "open", "secretive"); got["open"] != 30 || got["secretive"] != 30 {
		t.Errorf("of 60 calls %v, want 30 each", got)
	}
}
