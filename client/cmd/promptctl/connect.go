package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server"
)

// service says which server a command calls, and how long it waits for each answer.
type service struct {
	address     string // empty: a server in this process
	credentials credentialFlags
	timeout     time.Duration
}

// flags adds --server, what goes with it, and --timeout to cmd.
func (s *service) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.address, "server", "",
		"address of a server, called in plaintext unless one of --ca, --cert, --server-name and --server-id is there (default: a server in this process, which trusts the caller to assert any scope and authority)")
	noFiles(cmd, "server")
	s.credentials.flags(cmd)
	cmd.Flags().DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for each answer")
}

// options returns what the flags say of a client, on which every call is bounded by the timeout.
//
// An empty address that was given is wrong usage: taking a forgotten variable for the trusting
// server in this process would be the wrong way to fail.
func (s *service) options(cmd *cobra.Command) ([]client.Option, error) {
	if s.address == "" && cmd.Flags().Changed("server") {
		return nil, usageError{errors.New("--server needs an address")}
	}
	credentials, err := s.credentials.options(cmd)
	if err != nil {
		return nil, usageError{err}
	}
	if s.timeout <= 0 {
		return nil, usageError{fmt.Errorf("--timeout must be more than 0, not %s", s.timeout)}
	}
	return append([]client.Option{
		client.WithTimeout(s.timeout),
		client.WithFailFast(), // who mistypes an address wants to know soon
		client.WithMaxSend(math.MaxInt32),
		client.WithMaxReceive(math.MaxInt32),
	}, credentials...), nil
}

// connect returns a client, which the caller ends with the function returned.
func (s *service) connect(cmd *cobra.Command) (*client.Client, func(), error) {
	options, err := s.options(cmd)
	if err != nil {
		return nil, nil, err
	}
	if s.address != "" {
		api, err := client.Dial(s.address, options...)
		if file, ok := errors.AsType[*client.FileError](err); ok {
			return nil, nil, usageError{file}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--server %s: %w", s.address, err)
		}
		return api, func() { _ = api.Close() }, nil
	}

	listener := bufconn.Listen(1 << 20)
	srv := server.New(server.Config{Logger: slog.New(slog.DiscardHandler), Limits: server.Limits{
		InFlightBytes: 1 << 30, BufferedBytes: 1 << 30, CallerShare: 1, // its only caller paces itself
		CallTimeout: s.timeout,
	}})
	go func() { _ = srv.Serve(listener) }() // ends with Stop; a failure before shows in every call
	api, err := client.Dial("passthrough:///in-process", append(options, client.WithDialOptions(
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })))...)
	if err != nil {
		srv.Stop()
		return nil, nil, err
	}
	return api, func() { _ = api.Close(); srv.Stop() }, nil
}

// reach fails if no server answers at the address. A run over many lines calls it first, as it
// would otherwise wait, and say so, on each. Any answer will do, a refusal too.
func (s *service) reach(ctx context.Context, api *client.Client) error {
	_, err := api.ListTokenizers(ctx, &pb.ListTokenizersRequest{})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case status.Code(err) == codes.DeadlineExceeded:
		return s.failed(err)
	case status.Code(err) == codes.Unimplemented:
		return nil // what lies between may let through only what the run calls
	default:
		return s.lost(err)
	}
}

// lost tells a connection that is lost, or that no call can be sent over, and an address where another
// service answers, from a refusal: it returns an error for people if err is UNAVAILABLE, UNIMPLEMENTED
// or UNAUTHENTICATED without the details that a refusal of the service carries, else nil.
func (s *service) lost(err error) error {
	failure := client.ErrorOf(status.Convert(err))
	switch failure.Code {
	case codes.Unavailable, codes.Unimplemented, codes.Unauthenticated:
		if failure.ReasonName() == "" {
			return s.failed(err)
		}
	}
	return nil
}

func (s *service) failed(err error) error {
	name := s.address
	if name == "" {
		name = "the server in this process"
	}
	return fmt.Errorf("cannot call %s: %s", name, status.Convert(err).Message())
}
