package server_test

import (
	"context"
	"errors"
	"flag"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/promptassembly/promptassembly/client"
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/testca"
)

var rotationFor = flag.Duration("rotation", 0,
	"for how long certificates with a life of 30 s are rotated every 10 s, at least 50 s; 0: scaled down to 12 s, with 6 s and 2 s")

// rotation is how certificates come and go under load.
type rotation struct{ life, every, total time.Duration }

func rotationOf() rotation {
	if *rotationFor > 0 {
		return rotation{life: 30 * time.Second, every: 10 * time.Second, total: *rotationFor}
	}
	return rotation{life: 6 * time.Second, every: 2 * time.Second, total: 12 * time.Second}
}

// The certificates of both ends are replaced again and again, and then the authority, in the order that
// authorities are replaced in: no call fails.
func TestRotationFailsNoCall(t *testing.T) {
	forEachDelivery(t, func(t *testing.T, deliver delivery) {
		plan := rotationOf()
		before, after := testca.New(t, rotationDomain), testca.New(t, rotationDomain)
		rotate := func(step int) {
			issuer, trusted := before, []*testca.CA{before}
			switch {
			case step == 1:
				trusted = []*testca.CA{before, after}
			case step == 2 || step == 3: // at the latest half of a life after 2 no connection shows the one before
				issuer, trusted = after, []*testca.CA{before, after}
			case step >= 4:
				issuer, trusted = after, []*testca.CA{after}
			}
			deliver.rotate(issueFor(issuer, rotationServer, plan.life), issueFor(issuer, rotationHarness, plan.life), trusted...)
		}
		// Certificates know whole seconds: made at the beginning of one they live for all of theirs.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		begun := time.Now()
		rotate(0)
		s := serveRotating(t, deliver, plan.life)
		load := startLoad(t, s.address, deliver)
		for step := 1; time.Duration(step)*plan.every < plan.total; step++ {
			time.Sleep(time.Until(begun.Add(time.Duration(step) * plan.every)))
			rotate(step)
		}
		time.Sleep(time.Until(begun.Add(plan.total)))
		load.stop()

		calls, connections := load.calls.Load(), load.connections.made()
		t.Logf("%s: %d calls, %d failed, %d connections of %d clients, %d certificates each",
			plan.total, calls, load.failed.Load(), connections, loadClients, int(plan.total/plan.every))
		if load.failed.Load() > 0 {
			t.Errorf("%d of %d calls failed: %v", load.failed.Load(), calls, load.failures)
		}
		for series, n := range s.values(t) {
			name, _, _ := strings.Cut(series, " ")
			if strings.HasSuffix(name, "_refusals_total") || strings.HasPrefix(series, "promptassembly_access_reloads_total failed") {
				t.Errorf("%s is %v, want none", series, n)
			}
		}
		if answered := s.value(t, "grpc_server_handled_total OK SelectMemory "+serviceName+" unary"); calls == 0 || answered != float64(calls) {
			t.Errorf("the server answered %.0f calls of %d", answered, calls)
		}
		if least := loadClients * int(plan.total/plan.life); connections < least {
			t.Errorf("%d connections, want %d and more: they outlive certificates", connections, least)
		}
	})
}

// Once an authority is not trusted any more, no call is answered that its certificates vouch for: not
// over connections that are open, nor over new ones.
func TestAuthorityIsRemoved(t *testing.T) {
	forEachDelivery(t, func(t *testing.T, deliver delivery) {
		before, after := testca.New(t, rotationDomain), testca.New(t, rotationDomain)
		serverLeaf := issueFor(after, rotationServer, 2*time.Hour)
		harness := issueFor(after, rotationHarness, 2*time.Hour)
		old := issueFor(before, rotationHarness, 2*time.Hour)
		deliver.rotate(serverLeaf, harness, before, after)
		s := serveRotating(t, deliver, time.Hour)

		var opened connections
		open := dialAs(t, s.address, old, after, &opened)
		if _, err := open.SelectMemory(t.Context(), asserting()); err != nil {
			t.Fatal(err)
		}
		deliver.rotate(serverLeaf, harness, after)
		removed := time.Now()
		var err error
		for err == nil {
			if time.Since(removed) > 5*time.Second {
				t.Fatal("the authority is trusted 5 s after it was removed")
			}
			_, err = open.SelectMemory(t.Context(), asserting())
			time.Sleep(5 * time.Millisecond)
		}
		t.Logf("refused after %s", time.Since(removed).Round(time.Millisecond))
		wantInvalid(t, "over the open connection", err)
		if opened.made() != 1 {
			t.Errorf("%d connections, want the one", opened.made())
		}
		_, err = dialAs(t, s.address, old, after, new(connections)).SelectMemory(t.Context(), asserting())
		wantInvalid(t, "over a new connection", err)

		renewed := dialRotating(t, s.address, deliver, new(connections))
		if _, err := renewed.SelectMemory(t.Context(), asserting()); err != nil {
			t.Errorf("the caller whose certificate is another authority's: %v", err)
		}
		if n := s.value(t, "promptassembly_identity_refusals_total not trusted mtls"); n < 2 {
			t.Errorf("%v refusals counted, want 2 and more", n)
		}
	})
}

// wantInvalid checks that a call was refused for an identity that does not hold.
func wantInvalid(t *testing.T, what string, err error) {
	t.Helper()
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Code != codes.Unauthenticated || refused.Reason != pb.ErrorReason_ERROR_REASON_IDENTITY_INVALID {
		t.Errorf("%s: %v, want UNAUTHENTICATED (IDENTITY_INVALID)", what, err)
	}
}

// Whatever the limits say, a connection ends within half of the shortest life of certificates, with a
// call that goes on for ever, too.
func TestConnectionsEndBeforeCertificates(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip(noLinks)
	}
	t.Parallel()
	const life = 6 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ca := testca.New(t, rotationDomain)
	deliver := newFileDelivery(t)
	harness := issueFor(ca, rotationHarness, time.Hour)
	deliver.rotate(issueFor(ca, rotationServer, time.Hour), harness, ca)
	s := serveRotating(t, deliver, life)
	var opened connections
	conn := dialConn(t, s.address, tlsOf(harness, ca), &opened)
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, new(healthpb.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = watch.Recv()
	}
	eventually(t, "the connection is closed", func() bool { return len(opened.lived()) > 0 })
	// A second after nothing more can be answered grpc closes it, and the machine may be busy.
	if lived := opened.lived()[0]; lived > life/2+2*time.Second {
		t.Errorf("a connection lived for %s, want at most half of %s", lived, life)
	}
}
