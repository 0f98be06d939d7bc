package client

import (
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	_ "google.golang.org/grpc/health" // watches the health that serviceConfig names
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

// turns is the balancer.Builder of policyName.
type turns struct{}

// Name implements balancer.Builder.
func (turns) Name() string { return policyName }

// Build implements balancer.Builder.
func (turns) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	watching := watcher{cc, map[balancer.SubConn]bool{}}
	built := base.NewBalancerBuilder(policyName, pickerBuilder{watching.refused}, base.Config{}).Build(watching, opts)
	if _, ok := opts.DialCreds.(plaintext); ok {
		return localOnly{built, cc}
	}
	return built
}

// watcher is a balancer.ClientConn whose connections are ready once the health service of the server
// says so, and not before.
//
// A server may want to know who asks for its health. To one that it does not know, or permit, it is
// as good as any: the calls themselves are told what is wrong with them.
type watcher struct {
	balancer.ClientConn
	refused map[balancer.SubConn]bool // whose health this client may not know
}

// NewSubConn implements balancer.ClientConn.
func (w watcher) NewSubConn(addresses []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	report := opts.StateListener
	var conn balancer.SubConn
	opts.StateListener = func(state balancer.SubConnState) {
		if state.ConnectivityState == connectivity.Ready {
			conn.RegisterHealthListener(func(health balancer.SubConnState) { w.health(conn, health, report) })
			return
		}
		delete(w.refused, conn)
		report(state)
	}
	var err error
	conn, err = w.ClientConn.NewSubConn(addresses, opts) //nolint:staticcheck // it is to have one address, which it has
	return conn, err
}

// health reports what is known of the health of a connection.
func (w watcher) health(conn balancer.SubConn, state balancer.SubConnState, report func(balancer.SubConnState)) {
	refused := state.ConnectivityState == connectivity.TransientFailure && refusesWatch(state.ConnectionError)
	if w.refused[conn] && state.ConnectivityState == connectivity.Connecting {
		return // it is asked for again
	}
	if w.refused[conn] != refused {
		w.refused[conn] = refused
		// From ready to ready no new picker would be built.
		report(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
	}
	if refused {
		state = balancer.SubConnState{ConnectivityState: connectivity.Ready}
	}
	report(state)
}

// refusesWatch reports whether err is that of a server that refuses to tell its health to this
// caller. gRPC gives the status as a text only.
func refusesWatch(err error) bool {
	_, failure, _ := strings.Cut(err.Error(), "received health check RPC error: ")
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied} {
		if strings.HasPrefix(failure, "rpc error: code = "+code.String()+" ") {
			return true
		}
	}
	return false
}

// localOnly connects to addresses on this machine only, as all calls carry a token and none is
// encrypted.
type localOnly struct {
	balancer.Balancer
	cc balancer.ClientConn
}

// UpdateClientConnState implements balancer.Balancer.
func (l localOnly) UpdateClientConnState(state balancer.ClientConnState) error {
	for _, address := range state.ResolverState.Addresses {
		if leavesMachine(address.Addr) {
			l.cc.UpdateState(balancer.State{
				ConnectivityState: connectivity.TransientFailure,
				Picker: base.NewErrPicker(status.Errorf(codes.Unauthenticated, "client: %v, not to %s",
					errNotPrivate, address.Addr)),
			})
			return nil
		}
	}
	return l.Balancer.UpdateClientConnState(state)
}
