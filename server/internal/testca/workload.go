package testca

import (
	"crypto/x509"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// WorkloadAPI is a SPIFFE Workload API that serves X.509-SVIDs.
type WorkloadAPI struct {
	workload.UnimplementedSpiffeWorkloadAPIServer

	t      testing.TB
	socket string
	server *grpc.Server // nil: stopped

	mu      sync.Mutex // guards what follows
	answer  *workload.X509SVIDResponse
	rotated chan struct{} // closed by the next rotation
}

// ServeWorkloadAPI serves on a unix socket, whose path must be short, until the test ends. Who asks is
// refused until the first Rotate.
func ServeWorkloadAPI(t testing.TB, socket string) *WorkloadAPI {
	t.Helper()
	api := &WorkloadAPI{t: t, socket: socket, rotated: make(chan struct{})}
	api.Start()
	t.Cleanup(api.Stop)
	return api
}

// Address is what a client is configured with.
func (w *WorkloadAPI) Address() string { return "unix://" + w.socket }

// Start serves again after Stop.
func (w *WorkloadAPI) Start() {
	w.t.Helper()
	_ = os.Remove(w.socket)
	listener, err := net.Listen("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = grpc.NewServer()
	workload.RegisterSpiffeWorkloadAPIServer(w.server, w)
	go func(s *grpc.Server) { _ = s.Serve(listener) }(w.server)
}

// Stop ends serving, as an agent does that is replaced.
func (w *WorkloadAPI) Stop() {
	if w.server != nil {
		w.server.Stop()
		w.server = nil
	}
}

// Rotate gives everybody who asked, and asks, another SVID and other bundles: each trust domain has
// those of the authorities that are its.
func (w *WorkloadAPI) Rotate(svid *Leaf, trusted ...*CA) {
	w.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(svid.TLS.PrivateKey)
	if err != nil {
		w.t.Fatal(err)
	}
	id := svid.TLS.Leaf.URIs[0]
	answer := &workload.X509SVID{SpiffeId: id.String(), X509SvidKey: key}
	for _, raw := range svid.TLS.Certificate {
		answer.X509Svid = append(answer.X509Svid, raw...)
	}
	federated := make(map[string][]byte)
	for _, ca := range trusted {
		if ca.TrustDomain == id.Host {
			answer.Bundle = append(answer.Bundle, ca.Certificate.Raw...)
		} else {
			domain := "spiffe://" + ca.TrustDomain
			federated[domain] = append(federated[domain], ca.Certificate.Raw...)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = &workload.X509SVIDResponse{Svids: []*workload.X509SVID{answer}, FederatedBundles: federated}
	close(w.rotated)
	w.rotated = make(chan struct{})
}

// FetchX509SVID implements the Workload API.
func (w *WorkloadAPI) FetchX509SVID(_ *workload.X509SVIDRequest, stream grpc.ServerStreamingServer[workload.X509SVIDResponse]) error {
	if md, _ := metadata.FromIncomingContext(stream.Context()); len(md.Get("workload.spiffe.io")) != 1 {
		return status.Error(codes.InvalidArgument, "security header missing")
	}
	for {
		w.mu.Lock()
		answer, rotated := w.answer, w.rotated
		w.mu.Unlock()
		if answer == nil {
			return status.Error(codes.PermissionDenied, "no identity issued")
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
		select {
		case <-rotated:
		case <-stream.Context().Done():
			return nil
		}
	}
}
