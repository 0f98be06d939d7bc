package server_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

const (
	loadClients = 4 // each with a connection of its own
	loadWorkers = 8
	loadPause   = 4 * time.Millisecond
)

// load makes calls all the time.
type load struct {
	calls, failed atomic.Int64
	connections   connections
	ending        chan struct{}
	running       sync.WaitGroup

	mu       sync.Mutex // guards what follows
	failures map[string]int
}

// startLoad begins to make calls, each of which is sent once: there is nothing that repeats it.
func startLoad(t *testing.T, address string, deliver delivery) *load {
	t.Helper()
	l := &load{ending: make(chan struct{}), failures: make(map[string]int)}
	var clients []*client.Client
	for range loadClients {
		clients = append(clients, dialRotating(t, address, deliver, &l.connections))
	}
	for i := range loadWorkers {
		l.running.Go(func() { l.work(t.Context(), clients[i%loadClients]) })
	}
	return l
}

func (l *load) work(ctx context.Context, c *client.Client) {
	pause := time.NewTicker(loadPause)
	defer pause.Stop()
	for {
		l.calls.Add(1)
		if _, err := c.SelectMemory(ctx, asserting()); err != nil {
			l.failed.Add(1)
			l.mu.Lock()
			l.failures[err.Error()]++
			l.mu.Unlock()
		}
		select {
		case <-pause.C:
		case <-l.ending:
			return
		}
	}
}

// stop returns once the last call is answered.
func (l *load) stop() {
	close(l.ending)
	l.running.Wait()
}

// asserting is a request that only the harness may make.
func asserting() *pb.SelectMemoryRequest {
	c := candidate("m", "text")
	c.UserScope, c.Authority = "user:mei", pb.Authority_AUTHORITY_CURRENT_TURN
	return &pb.SelectMemoryRequest{UserScope: "user:mei", Candidates: []*pb.MemoryContextCandidate{c}}
}

// connections are those that clients made.
type connections struct {
	mu   sync.Mutex // guards what follows
	n    int
	ages []time.Duration // of those that ended
}

// made returns how many there were.
func (c *connections) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// lived returns for how long those lasted that have ended.
func (c *connections) lived() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.ages...)
}

func (c *connections) option() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
		begun := time.Now()
		ended := sync.OnceFunc(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ages = append(c.ages, time.Since(begun))
		})
		return seenConn{conn, ended}, nil
	})
}

type seenConn struct {
	net.Conn
	ended func()
}

// Close implements net.Conn.
func (c seenConn) Close() error {
	c.ended()
	return c.Conn.Close()
}

// dialRotating returns a client that has its certificates as delivered.
func dialRotating(t *testing.T, address string, deliver delivery, made *connections) *client.Client {
	t.Helper()
	return dialClient(t, address, made, deliver.client(t))
}

// dialAs returns a client with one certificate, that trusts one authority.
func dialAs(t *testing.T, address string, leaf *testca.Leaf, trusted *testca.CA, made *connections) *client.Client {
	t.Helper()
	return dialClient(t, address, made, client.WithTLS(tlsOf(leaf, trusted)))
}

func dialClient(t *testing.T, address string, made *connections, secured client.Option) *client.Client {
	t.Helper()
	c, err := client.Dial(address, secured, client.WithAttempts(1), client.WithDialOptions(made.option()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// dialConn returns a connection with the defaults of gRPC's client.
func dialConn(t *testing.T, address string, config *tls.Config, made *connections) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)), made.option())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func tlsOf(leaf *testca.Leaf, trusted *testca.CA) *tls.Config {
	domain := spiffeid.RequireTrustDomainFromString(trusted.TrustDomain)
	bundle := x509bundle.New(domain)
	bundle.AddX509Authority(trusted.Certificate)
	config := tlsconfig.TLSClientConfig(bundle, tlsconfig.AuthorizeMemberOf(domain))
	config.MinVersion, config.Certificates = tls.VersionTLS13, []tls.Certificate{leaf.TLS}
	return config
}
