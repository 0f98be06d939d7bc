package admin_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/promptassembly/promptassembly/server/internal/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is an admin server on a port of its own.
type running struct {
	*admin.Server
	address string
	health  *health.Server
	ended   <-chan error // of Serve
}

func start(t *testing.T) running {
	t.Helper()
	metrics := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."})
	counter.Add(3)
	metrics.MustRegister(counter)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := health.NewServer()
	s := admin.New(admin.Config{Health: h, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return running{s, listener.Addr().String(), h, ended}
}

func TestPages(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		method, path string
		status       int
		body         string // what is in it
	}{
		{"GET", "/", 200, "/readyz"},
		{"GET", "/livez", 200, "alive"},
		{"GET", "/readyz", 200, "ready"},
		{"GET", "/metrics", 200, "things_total 3"},
		{"HEAD", "/metrics", 200, ""},
		{"HEAD", "/readyz", 200, ""},
		{"POST", "/readyz", 405, "Method Not Allowed"},
		{"PUT", "/", 405, "Method Not Allowed"},
		{"DELETE", "/metrics", 405, "Method Not Allowed"},
		{"GET", "/debug/pprof/", 404, "not found"},
		{"POST", "/grpc.health.v1.Health/Check", 404, "not found"},
		{"GET", "/readyz/", 404, "not found"},
	} {
		for name, client := range map[string]*http.Client{"HTTP/1.1": http1(t), "HTTP/2.0": http2(t)} {
			t.Run(name+" "+test.method+" "+test.path, func(t *testing.T) {
				answer, body := get(t, client, test.method, "http://"+s.address+test.path)
				if answer.StatusCode != test.status || !strings.Contains(body, test.body) || answer.Proto != name {
					t.Errorf("%s %d with %q, want %d with %q", answer.Proto, answer.StatusCode, body, test.status, test.body)
				}
			})
		}
	}
}

func TestReadinessIsHealth(t *testing.T) {
	s := start(t)
	for status, want := range map[healthpb.HealthCheckResponse_ServingStatus]string{
		healthpb.HealthCheckResponse_NOT_SERVING: "not ready: health is NOT_SERVING, as the server is going away\n",
		healthpb.HealthCheckResponse_UNKNOWN:     "not ready: health is UNKNOWN\n",
	} {
		s.health.SetServingStatus("", status)
		if answer, body := get(t, http1(t), "GET", "http://"+s.address+"/readyz"); answer.StatusCode != http.StatusServiceUnavailable || body != want {
			t.Errorf("%v: %d with %q, want 503 with %q", status, answer.StatusCode, body, want)
		}
		if answer, _ := get(t, http1(t), "GET", "http://"+s.address+"/livez"); answer.StatusCode != http.StatusOK {
			t.Errorf("%v: livez %d, want 200", status, answer.StatusCode)
		}
	}
}

func TestGRPCHealth(t *testing.T) {
	s := start(t)
	s.health.SetServingStatus("some.Service", healthpb.HealthCheckResponse_NOT_SERVING)
	client := healthpb.NewHealthClient(dial(t, s.address))
	if answer, err := client.Check(t.Context(), new(healthpb.HealthCheckRequest)); err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("Check: %v, %v", answer, err)
	}
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "none"}); status.Code(err) != codes.NotFound {
		t.Errorf("Check of none: %v, want NOT_FOUND", err)
	}
	if answer, err := client.List(t.Context(), new(healthpb.HealthListRequest)); err != nil || len(answer.GetStatuses()) != 2 {
		t.Errorf("List: %v, %v", answer, err)
	}
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 8<<10)}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("Check of a long name: %v, want RESOURCE_EXHAUSTED", err)
	}
}

// A watch hears of the change, and holds up the end of the server no more than an open connection.
func TestWatchEndsWithTheServer(t *testing.T) {
	s := start(t)
	idle, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	stream, err := healthpb.NewHealthClient(dial(t, s.address)).Watch(t.Context(), new(healthpb.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	next := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if answer, err := stream.Recv(); err != nil || answer.GetStatus() != want {
			t.Fatalf("%v, %v, want %v", answer, err, want)
		}
	}
	next(healthpb.HealthCheckResponse_SERVING)
	s.health.Shutdown()
	next(healthpb.HealthCheckResponse_NOT_SERVING)

	begun := time.Now()
	s.Stop()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the end took %s", took)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the watch goes on")
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if conn, err := net.Dial("tcp", s.address); err == nil {
		_ = conn.Close()
		t.Error("still listening")
	}
}

func TestHeadersThatAreTooLarge(t *testing.T) {
	s := start(t)
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 24<<10)+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "431") {
		t.Errorf("answered %q, want 431", line)
	}
}

func TestServeFails(t *testing.T) {
	s := start(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := s.Serve(listener); err == nil {
		t.Error("no error for a listener that is closed")
	}
}

func get(t *testing.T, client *http.Client, method, url string) (answer *http.Response, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err = client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func http1(t *testing.T) *http.Client { return speaking(t, (*http.Protocols).SetHTTP1) }
func http2(t *testing.T) *http.Client { return speaking(t, (*http.Protocols).SetUnencryptedHTTP2) }

func speaking(t *testing.T, protocol func(*http.Protocols, bool)) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	protocol(transport.Protocols, true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
