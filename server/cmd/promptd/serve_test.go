package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
)

func TestServesUntilItIsStopped(t *testing.T) {
	p := start(t, "--listen", "localhost:0")
	call(t, dial(t, p.address))
	p.stop()
	if status := p.ends(t); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
	for _, address := range []string{p.address, p.admin} {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			t.Errorf("%s is still listening", address)
		}
	}
}

// A call that never ends holds the daemon up for no longer than its drain timeout.
func TestDrainTimeout(t *testing.T) {
	p := start(t, "--drain-timeout", "50ms")
	stream := openCall(t, p.address)
	p.stop()
	if status := p.ends(t); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
	if err := stream.RecvMsg(new(pb.SelectMemoryResponse)); status.Code(err) != codes.Unavailable {
		t.Errorf("the call that never ends: %v, want UNAVAILABLE", err)
	}
}

// During the wait nothing is ready any more, but calls are answered, new connections too.
func TestDrainWait(t *testing.T) {
	p := start(t, "--drain-wait", "2s", "--drain-timeout", "50ms")
	conn := dial(t, p.address)
	call(t, conn)
	if status, body := get(t, p.admin, "/readyz"); status != 200 {
		t.Fatalf("readyz %d with %q, want 200", status, body)
	}
	watch, err := healthpb.NewHealthClient(dialWith(t, p.admin, insecure.NewCredentials())).Watch(t.Context(), new(healthpb.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := watch.Recv(); err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("watch: %v, %v, want SERVING", answer, err)
	}

	begun := time.Now()
	p.stop()
	if answer, err := watch.Recv(); err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Fatalf("watch: %v, %v, want NOT_SERVING", answer, err)
	}
	if status, body := get(t, p.admin, "/readyz"); status != 503 || !strings.Contains(body, "NOT_SERVING") {
		t.Errorf("readyz %d with %q, want 503", status, body)
	}
	if status, _ := get(t, p.admin, "/livez"); status != 200 {
		t.Errorf("livez %d, want 200", status)
	}
	call(t, conn)
	call(t, dial(t, p.address))
	if status := p.ends(t); status != exitDone {
		t.Errorf("exit status %d, want 0", status)
	}
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("ended after %s, want 2s and more", took)
	}
}

// The limit of a drain counts from the end of the wait, and the admin listener answers all along.
func TestDrainOfCallInFlight(t *testing.T) {
	p := start(t, "--drain-wait", "1s", "--drain-timeout", "1s")
	stream := openCall(t, p.address)
	begun := time.Now()
	p.stop()
	readyz(t, p.admin, 503)
	time.Sleep(time.Until(begun.Add(1500 * time.Millisecond)))
	if status, _ := get(t, p.admin, "/metrics"); status != 200 {
		t.Errorf("metrics %d while a call is in flight, want 200", status)
	}
	if err := stream.RecvMsg(new(pb.SelectMemoryResponse)); status.Code(err) != codes.Unavailable {
		t.Errorf("the call that never ends: %v, want UNAVAILABLE", err)
	}
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("the call was cut off after %s, want 2s", took)
	}
}

func TestAdmin(t *testing.T) {
	p := start(t)
	status, body := get(t, p.admin, "/metrics")
	if status != 200 {
		t.Errorf("metrics %d, want 200", status)
	}
	for _, metric := range []string{"go_goroutines ", "process_start_time_seconds "} {
		if !strings.Contains(body, "\n"+metric) {
			t.Errorf("no %s in %s", metric, body)
		}
	}
	service := &healthpb.HealthCheckRequest{Service: pb.PromptAssemblyService_ServiceDesc.ServiceName}
	answer, err := healthpb.NewHealthClient(dialWith(t, p.admin, insecure.NewCredentials())).Check(t.Context(), service)
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v, want SERVING", answer, err)
	}
}

func TestAdminOff(t *testing.T) {
	for _, off := range []string{"off", ""} {
		p := start(t, "--admin-listen", off)
		if p.admin != "off" {
			t.Errorf("admin listens on %s", p.admin)
		}
		call(t, dial(t, p.address))
	}
}

// openCall returns a call whose request never comes, once the server has it.
func openCall(t *testing.T, address string) grpc.ClientStream {
	t.Helper()
	conn := dial(t, address)
	call(t, conn)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	desc := &grpc.StreamDesc{ClientStreams: true}
	stream, err := conn.NewStream(ctx, desc, pb.PromptAssemblyService_SelectMemory_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	call(t, conn) // on the same connection, after it
	return stream
}
