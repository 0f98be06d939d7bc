package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

// Client calls a Prompt Assembly service, and repeats calls as the package comment says. It
// implements pb.PromptAssemblyServiceClient and is safe for concurrent use.
type Client struct {
	service pb.PromptAssemblyServiceClient
	close   func() error
	options options
	servers *servers
	budget  *budget
}

var _ pb.PromptAssemblyServiceClient = (*Client)(nil)

// Dial returns a client of the servers that a gRPC target names: host:port, dns:///host:port,
// unix:path and what else gRPC resolves. Calls take turns over its addresses, leaving out servers
// that their health service reports as not serving. It does not wait for a connection; it fails
// only if the target makes no sense, or a file of an option cannot be used.
//
// Service configs of the resolver are not used. For what needs them, such as xDS, make the
// connection with gRPC and use New.
func Dial(target string, opts ...Option) (*Client, error) {
	return dial(target, newOptions(opts))
}

// DialAll is Dial for several fixed addresses, each host:port or unix:path. With TLS each server
// has to prove its own host, unless the config names one for all.
func DialAll(addresses []string, opts ...Option) (*Client, error) {
	if len(addresses) == 0 {
		return nil, errors.New("client: no address to dial")
	}
	o := newOptions(opts)
	var state resolver.State
	for _, address := range addresses {
		name := address
		if strings.HasPrefix(address, "unix:") {
			name = "localhost"
		} else if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		if o.serverName != "" {
			name = "" // of an address it would go before that of the config
		}
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address, ServerName: name})
	}
	fixed := manual.NewBuilderWithScheme("promptassembly")
	fixed.InitialState(state)
	return dial("promptassembly:///", o, grpc.WithResolvers(fixed))
}

// connectBackoff is how long a server that cannot be reached is left alone. gRPC's own two minutes
// are longer than a call waits.
var connectBackoff = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second,
	},
	MinConnectTimeout: 5 * time.Second,
}

// dialOptions returns the options of gRPC that connections are made with. It fails if a file cannot
// be used.
func (o *options) dialOptions() ([]grpc.DialOption, error) {
	transport := o.credentials
	if o.tlsFiles != nil {
		opened, err := o.tlsFiles.open(o.now)
		if err != nil {
			return nil, err
		}
		transport = opened
	}
	var token *tokenFile
	if o.tokenFile != nil {
		var err error
		if token, err = openToken(*o.tokenFile, o.now); err != nil {
			return nil, err
		}
	}
	var made []grpc.DialOption
	if token != nil {
		made = append(made, grpc.WithPerRPCCredentials(token))
	}
	switch {
	case transport == nil && token != nil:
		transport = newPlaintext()
		made = append(made, grpc.WithNoProxy()) // one on this machine would pass the token on
	case transport == nil:
		transport = insecure.NewCredentials()
	}
	return append(made,
		grpc.WithTransportCredentials(transport),
		grpc.WithKeepaliveParams(o.keepalive),
		grpc.WithConnectParams(connectBackoff),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // it gives up on large requests and on answers that have begun
	), nil
}

func dial(target string, o options, more ...grpc.DialOption) (*Client, error) {
	own, err := o.dialOptions()
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	conn, err := grpc.NewClient(target, slices.Concat(own, more, o.dial)...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c := newClient(conn, o)
	c.close = conn.Close
	return c, nil
}

// New returns a client that calls over conn, which stays the caller's: Close does not close it. Of
// the options, those on connections (WithTLS, WithTLSFiles, WithTokenFile, WithKeepalive,
// WithDialOptions) have no effect. Over several servers conn has to spread the calls itself, and an
// attempt can go to a server that failed before; its own retries should be off
// (grpc.WithDisableRetry).
func New(conn grpc.ClientConnInterface, opts ...Option) *Client {
	return newClient(conn, newOptions(opts))
}

func newClient(conn grpc.ClientConnInterface, o options) *Client {
	return &Client{
		service: pb.NewPromptAssemblyServiceClient(conn),
		close:   func() error { return nil },
		options: o,
		servers: new(servers),
		budget:  newBudget(),
	}
}

// Close ends the connections that Dial and DialAll make. Calls in flight fail with CANCELLED.
func (c *Client) Close() error { return c.close() }

// SelectMemory asks which memories enter the prompt of one query, and why. It fails with an *Error.
func (c *Client) SelectMemory(
	ctx context.Context, req *pb.SelectMemoryRequest, opts ...grpc.CallOption,
) (*pb.SelectMemoryResponse, error) {
	return call(ctx, c, c.service.SelectMemory, req, opts)
}

// PlanPrompt asks for one prompt out of segments and recalled memory, with the reason for each. It
// fails with an *Error.
func (c *Client) PlanPrompt(
	ctx context.Context, req *pb.PlanPromptRequest, opts ...grpc.CallOption,
) (*pb.PlanPromptResponse, error) {
	return call(ctx, c, c.service.PlanPrompt, req, opts)
}

// ListTokenizers asks which token counters a request can name. It fails with an *Error.
func (c *Client) ListTokenizers(
	ctx context.Context, req *pb.ListTokenizersRequest, opts ...grpc.CallOption,
) (*pb.ListTokenizersResponse, error) {
	return call(ctx, c, c.service.ListTokenizers, req, opts)
}
