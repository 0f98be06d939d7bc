package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/promptassembly/promptassembly/server/internal/config"
)

// listen listens on an address of the configuration. A unix socket that a process left behind is
// replaced; the new one is removed when the listener is closed.
func listen(address string) (net.Listener, error) {
	network, name := config.Network(address)
	if network == "unix" {
		if err := removeStale(name); err != nil {
			return nil, err
		}
	}
	return new(net.ListenConfig).Listen(context.Background(), network, name)
}

// removeStale removes the socket at path if nobody listens on it. It removes nothing that is no
// socket.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there, and is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("%s: address already in use", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default: // a full queue, no permission: somebody may well listen
		return err
	}
}

// addressText writes where a listener listens as the configuration would.
func addressText(listener net.Listener) string {
	if listener == nil {
		return "off"
	}
	address := listener.Addr()
	if address.Network() == "unix" {
		return "unix:" + address.String()
	}
	return address.String()
}
