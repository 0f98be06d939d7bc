package identity

import "net"

// WithUnixUsers returns a listener like l whose unix sockets know the user of the process at the other
// end, as far as the system tells; other connections stay as they are. Those that wrap its connections
// and their addresses keep it known if an address in another has the method Unwrap() net.Addr.
func WithUnixUsers(l net.Listener) net.Listener { return userListener{l} }

type userListener struct{ net.Listener }

// Accept implements net.Listener.
func (l userListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if unix, ok := conn.(*net.UnixConn); ok {
		if uid, ok := peerUser(unix); ok {
			return userConn{unix, uid}, nil
		}
	}
	return conn, nil
}

type userConn struct {
	*net.UnixConn
	uid uint32
}

// RemoteAddr implements net.Conn.
func (c userConn) RemoteAddr() net.Addr { return userAddr{c.UnixConn.RemoteAddr(), c.uid} }

type userAddr struct {
	net.Addr
	uid uint32
}

// unixUser returns the user that an address, or one that is wrapped in it, holds.
func unixUser(address net.Addr) (uid uint32, ok bool) {
	for {
		switch inner := address.(type) {
		case userAddr:
			return inner.uid, true
		case interface{ Unwrap() net.Addr }:
			address = inner.Unwrap()
		default:
			return 0, false
		}
	}
}
