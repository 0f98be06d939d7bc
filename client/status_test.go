package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// failure returns a status with details.
func failure(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	st, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return st.Err()
}

func reason(name string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Reason: name, Domain: "promptassembly"}
}

func retryAfter(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

// What a server answers first, and whether the client asks again.
func TestWhatIsRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"unavailable":             {failure(codes.Unavailable, "upstream connect error"), true},
		"log cannot be written":   {failure(codes.Unavailable, "x", reason("AUDIT_UNAVAILABLE")), true},
		"counter failed":          {failure(codes.Unavailable, "x", reason("TOKEN_COUNTER_FAILED")), true},
		"overloaded":              {failure(codes.ResourceExhausted, "x", reason("OVERLOADED")), true},
		"cancelled on the way":    {failure(codes.Canceled, "x"), true},
		"deadline of its own":     {failure(codes.DeadlineExceeded, "x"), true},
		"INTERNAL of a proxy":     {failure(codes.Internal, "unexpected EOF"), true},
		"unavailable, refused":    {failure(codes.Unavailable, "x", reason("OVERLOADED")), false},
		"unavailable, unknown":    {failure(codes.Unavailable, "x", reason("OF_A_LATER_VERSION")), false},
		"counter answers rubbish": {failure(codes.Internal, "x", reason("TOKEN_COUNTER_FAILED")), false},
		"a bug":                   {failure(codes.Internal, "internal error"), false},
		"not valid":               {failure(codes.InvalidArgument, "x", reason("INVALID_REQUEST")), false},
		"over the budget":         {failure(codes.FailedPrecondition, "x", reason("REQUIRED_SEGMENTS_EXCEED_BUDGET")), false},
		"not permitted":           {failure(codes.PermissionDenied, "x", reason("SCOPE_NOT_PERMITTED")), false},
		"authority not permitted": {failure(codes.PermissionDenied, "x", reason("AUTHORITY_NOT_PERMITTED")), false},
		"required not permitted":  {failure(codes.PermissionDenied, "x", reason("REQUIRED_NOT_PERMITTED")), false},
		"policy not permitted":    {failure(codes.PermissionDenied, "x", reason("POLICY_NOT_PERMITTED")), false},
		"not authenticated":       {failure(codes.Unauthenticated, "x", reason("IDENTITY_MISSING")), false},
		"wrongly authenticated":   {failure(codes.Unauthenticated, "x", reason("IDENTITY_INVALID")), false},
		"refused by a proxy":      {failure(codes.Unauthenticated, "x"), false},
		"too large":               {failure(codes.ResourceExhausted, "grpc: received message larger than max (17 vs. 16)"), false},
		"overloaded elsewhere":    {failure(codes.ResourceExhausted, "x", &errdetails.ErrorInfo{Reason: "OVERLOADED", Domain: "example.org"}), false},
		"unimplemented":           {failure(codes.Unimplemented, "x"), false},
		"unknown":                 {errors.New("x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			f, address := fakeServer(t, func(_ context.Context, nth int) (*pb.ListTokenizersResponse, error) {
				if nth == 1 {
					return nil, test.err
				}
				return good("second"), nil
			})
			answer, err := list(t.Context(), dial(t, []string{address}, noPause()))
			if test.again {
				if err != nil || answer.GetUnicodeVersion() != "second" {
					t.Errorf("got %v, %v, want the second answer", answer, err)
				}
				return
			}
			refused, ok := errors.AsType[*client.Error](err)
			if !ok || refused.Code != status.Code(test.err) || refused.Attempts != 1 || len(f.calls) != 1 {
				t.Errorf("after %d calls: %+v, want the first answer", len(f.calls), err)
			}
		})
	}
}

// How long the client waits before it repeats, by what the server says.
func TestPushback(t *testing.T) {
	overloaded := failure(codes.ResourceExhausted, "x", reason("OVERLOADED"), retryAfter(700*time.Millisecond))
	for name, test := range map[string]struct {
		err         error
		trailer     []string
		least, most time.Duration // most 0: it is not repeated
	}{
		"nothing said":           {failure(codes.Unavailable, "x"), nil, 0, 20 * time.Millisecond},
		"in the details":         {overloaded, nil, 700 * time.Millisecond, 1070 * time.Millisecond},
		"in the trailer":         {failure(codes.Unavailable, "x"), []string{"400"}, 400 * time.Millisecond, 620 * time.Millisecond},
		"the trailer goes first": {overloaded, []string{"400"}, 400 * time.Millisecond, 620 * time.Millisecond},
		"at once":                {overloaded, []string{"0"}, 0, 20 * time.Millisecond},
		"not again":              {overloaded, []string{"-1"}, 0, 0},
		"no number":              {overloaded, []string{"soon"}, 0, 0},
		"nothing":                {overloaded, []string{""}, 0, 0},
		"two numbers":            {overloaded, []string{"1", "2"}, 0, 0},
		"past any deadline":      {failure(codes.Unavailable, "x"), []string{"2147483647"}, 0, 0},
		"for ever":               {failure(codes.Unavailable, "x", retryAfter(1<<63-1)), nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := fakeServer(t, func(ctx context.Context, nth int) (*pb.ListTokenizersResponse, error) {
				if nth%2 == 1 {
					_ = grpc.SetTrailer(ctx, metadata.MD{"grpc-retry-pushback-ms": test.trailer})
					return nil, test.err
				}
				return good("second"), nil
			})
			seen := map[time.Duration]bool{}
			c := dial(t, []string{address}, client.WithSleep(func(_ context.Context, d time.Duration) {
				seen[d] = true
				if d < test.least || d >= test.most {
					t.Errorf("waits %s, want %s to %s", d, test.least, test.most)
				}
			}))
			for range 20 {
				if _, err := list(t.Context(), c); (err == nil) != (test.most > 0) {
					t.Fatal(err)
				}
				if test.most == 0 {
					break
				}
			}
			if test.most > 0 && len(seen) < 2 {
				t.Error("all callers wait equally long")
			}
		})
	}
}

func TestBackoffGrows(t *testing.T) {
	_, address := fakeServer(t, func(context.Context, int) (*pb.ListTokenizersResponse, error) {
		return nil, failure(codes.Unavailable, "x")
	})
	most := make([]time.Duration, 9)
	nth := 0
	c := dial(t, []string{address}, client.WithAttempts(10), client.WithSleep(func(_ context.Context, d time.Duration) {
		most[nth%9] = max(most[nth%9], d)
		nth++
	}))
	for range 30 {
		_, _ = list(t.Context(), c)
	}
	for i, bound := range []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000, 1000} {
		if bound *= time.Millisecond; most[i] >= bound || most[i] < bound/2 {
			t.Errorf("of 30 pauses after attempt %d the longest is %s, want it just under %s", i+1, most[i], bound)
		}
	}
}
