package server

import (
	"net"

	"golang.org/x/net/netutil"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Serve accepts connections until the server is stopped or drained, and then returns nil. It closes the
// listener. Several listeners can be served, each with its own limit of connections.
func (s *Server) Serve(listener net.Listener) error {
	return s.grpc.Serve(closableListener{netutil.LimitListener(identity.WithUnixUsers(listener), s.connections)})
}

// closableListener accepts connections that their remote address closes: it is all of a connection
// that grpc tells those who watch it.
type closableListener struct{ net.Listener }

// Accept implements net.Listener.
func (l closableListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return closableConn{conn}, nil
}

type closableConn struct{ net.Conn }

// RemoteAddr implements net.Conn.
func (c closableConn) RemoteAddr() net.Addr { return closableAddr{c.Conn.RemoteAddr(), c.Conn} }

type closableAddr struct {
	net.Addr
	conn net.Conn
}

// Unwrap returns the address that it was made of.
func (a closableAddr) Unwrap() net.Addr { return a.Addr }

// Close implements io.Closer.
func (a closableAddr) Close() error { return a.conn.Close() }
