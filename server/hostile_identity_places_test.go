package server_test

import (
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/promptassembly/promptassembly/server"
)

// Connections on which nobody is identified keep nobody out: each makes room for those that come after
// it, whether it says nothing, shakes hands, or makes calls that are refused.
func TestHostileConnectionsGiveUpTheirPlaces(t *testing.T) {
	const places = 6
	f := hostileServe(t, true, server.Config{Limits: server.Limits{Connections: places}})
	first := f.peer(t, f.leaf(hostileHarness))
	f.answers(t, first, "")

	var silent []net.Conn
	for range places {
		silent = append(silent, dialTCP(t, f.address))
	}
	for range 2 * places {
		f.peer(t, f.leaf("spiffe://example.com/harness"))
		p := f.peer(t, nil)
		if a := p.wait(p.request("ListTokenizers", nil)); a.code() != codes.Unauthenticated {
			t.Errorf("%+v, want UNAUTHENTICATED", a)
		}
	}
	for _, conn := range silent {
		_ = readToEnd(t, conn)
	}
	second := f.peer(t, f.leaf(hostileHarness))
	f.answers(t, second, "")
	f.answers(t, first, "") // on the connection that it had
	f.hasConnections(t, places)
}

// Where somebody was identified on every connection, a further one waits, as ever.
func TestHostileCallersWaitForPlaces(t *testing.T) {
	f := hostileServe(t, true, server.Config{Limits: server.Limits{Connections: 1}})
	first := f.peer(t, f.leaf(hostileHarness))
	f.answers(t, first, "")
	served := make(chan struct{})
	go func() {
		defer close(served)
		second := f.peer(t, f.leaf(hostileHarness))
		f.answers(t, second, "")
	}()
	select {
	case <-served:
		t.Error("there is one place, and it was taken")
	case <-time.After(50 * time.Millisecond):
	}
	f.answers(t, first, "")
	first.close()
	<-served
}
