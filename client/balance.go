package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
)

const (
	policyName    = "promptassembly_round_robin"
	serviceConfig = `{
		"loadBalancingConfig": [{"` + policyName + `": {}}],
		"healthCheckConfig": {"serviceName": "promptassembly.v1.PromptAssemblyService"}
	}`
)

func init() {
	balancer.Register(turns{})
}

// suspicion is how long a server that did not answer in time is avoided. By then keepalive, with its
// default, has given up a connection that is dead.
const suspicion = defaultKeepaliveTime + defaultKeepaliveTimeout

// servers remembers which addresses did not answer in time lately. gRPC takes a server that hangs
// for a good one until keepalive finds out.
type servers struct {
	several  atomic.Bool // there was more than one to choose from lately
	mu       sync.Mutex
	suspects map[string]time.Time // until when
}

func (s *servers) suspect(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspects == nil {
		s.suspects = map[string]time.Time{}
	}
	now := time.Now()
	for other, until := range s.suspects {
		if now.After(until) {
			delete(s.suspects, other)
		}
	}
	s.suspects[address] = now.Add(suspicion)
}

func (s *servers) answered(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.suspects, address)
}

func (s *servers) suspected(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.suspects[address]
	return ok && time.Now().Before(until)
}

// route is where the attempts of one call went. They follow each other, so it needs no lock.
type route struct {
	servers *servers
	last    string   // the address of the latest attempt, empty if it had none
	failed  []string // those of the attempts that failed
}

type routeKey struct{}

func withRoute(ctx context.Context, r *route) context.Context {
	return context.WithValue(ctx, routeKey{}, r)
}

// cost says how little an address is wanted for the next attempt.
func (r *route) cost(address string) int {
	switch {
	case slices.Contains(r.failed, address):
		return 2
	case r.servers.suspected(address):
		return 1
	default:
		return 0
	}
}

// pickerBuilder leaves out the servers that refuse to tell their health, unless there are no others.
type pickerBuilder struct{ refused map[balancer.SubConn]bool }

// Build implements base.PickerBuilder.
func (b pickerBuilder) Build(info base.PickerBuildInfo) balancer.Picker {
	if len(info.ReadySCs) == 0 {
		return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
	}
	p := new(picker)
	var others []server
	for conn, about := range info.ReadySCs {
		if b.refused[conn] {
			others = append(others, server{about.Address.Addr, conn})
		} else {
			p.ready = append(p.ready, server{about.Address.Addr, conn})
		}
	}
	if len(p.ready) == 0 {
		p.ready = others
	}
	p.turn.Store(rand.Uint32()) // clients that start together do not all begin with the same server
	return p
}

type server struct {
	address string
	conn    balancer.SubConn
}

// picker takes turns among the servers that a call wants most.
type picker struct {
	ready []server
	turn  atomic.Uint32
}

// Pick implements balancer.Picker.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	candidates := p.ready
	r, _ := info.Ctx.Value(routeKey{}).(*route)
	if r != nil && len(p.ready) > 1 {
		candidates = cheapest(p.ready, r)
	}
	chosen := candidates[p.turn.Add(1)%uint32(len(candidates))]
	if r != nil {
		r.last = chosen.address
		r.servers.several.Store(len(p.ready) > 1)
	}
	return balancer.PickResult{SubConn: chosen.conn}, nil
}

func cheapest(ready []server, r *route) []server {
	var found []server
	least := 3
	for _, s := range ready {
		switch cost := r.cost(s.address); {
		case cost < least:
			least, found = cost, append(found[:0], s)
		case cost == least:
			found = append(found, s)
		}
	}
	return found
}
