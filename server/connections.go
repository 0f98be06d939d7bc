package server

import (
	"container/list"
	"net"
	"sync"

	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Serve accepts connections until the server is stopped or drained, and then returns nil. It closes the
// listener. Several listeners can be served, each with its own limit of connections.
func (s *Server) Serve(listener net.Listener) error {
	return s.grpc.Serve(newBoundedListener(identity.WithUnixUsers(listener), s.connections, s.strangers))
}

// boundedListener bounds the connections that are open. Where all places are taken, a new connection
// takes that of the oldest stranger, or waits: those without an identity could keep out the others.
type boundedListener struct {
	net.Listener
	most   int
	strict bool // no connection is a stranger's

	mu        sync.Mutex
	changed   sync.Cond // for open and closed
	open      int
	closed    bool
	strangers list.List // of *boundedConn, the oldest first
}

// newBoundedListener returns a listener; with strangers every connection is a stranger's until it is said
// to be identified.
func newBoundedListener(listener net.Listener, most int, strangers bool) *boundedListener {
	l := &boundedListener{Listener: listener, most: most, strict: !strangers}
	l.changed.L = &l.mu
	return l
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &boundedConn{Conn: raw, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open >= l.most && !l.closed {
		oldest := l.strangers.Front()
		if oldest == nil {
			l.changed.Wait()
			continue
		}
		stranger := oldest.Value.(*boundedConn)
		l.leave(stranger)
		_ = stranger.Conn.Close()
	}
	if l.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	l.open++
	if !l.strict {
		conn.place = l.strangers.PushBack(conn)
	}
	return conn, nil
}

// Close implements net.Listener.
func (l *boundedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// leave gives back the place of a connection, once. The listener is locked.
func (l *boundedListener) leave(c *boundedConn) {
	if c.left {
		return
	}
	c.left = true
	l.identify(c)
	l.open--
	l.changed.Signal()
}

// identify makes a connection no stranger's. The listener is locked.
func (l *boundedListener) identify(c *boundedConn) {
	if c.place != nil {
		l.strangers.Remove(c.place)
		c.place = nil
	}
}

// boundedConn is a connection whose remote address is its handle: it is all of a connection that grpc
// tells those who watch it.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	place    *list.Element // among the strangers; nil: it is none
	left     bool
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.leave(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// RemoteAddr implements net.Conn.
func (c *boundedConn) RemoteAddr() net.Addr { return handle{c.Conn.RemoteAddr(), c} }

// handle is an rpc.Connection.
type handle struct {
	net.Addr
	conn *boundedConn
}

// Unwrap returns the address that it was made of.
func (h handle) Unwrap() net.Addr { return h.Addr }

// Close closes the connection.
func (h handle) Close() error { return h.conn.Close() }

// Identified says that a caller was identified on the connection.
func (h handle) Identified() {
	h.conn.listener.mu.Lock()
	defer h.conn.listener.mu.Unlock()
	h.conn.listener.identify(h.conn)
}
