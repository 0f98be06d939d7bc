package identity

import (
	"net"

	"golang.org/x/sys/unix"
)

// overflowUID is what the kernel says of users that have no number in this user namespace: it may be
// any of them.
const overflowUID = 65534

// peerUser returns the user of the process that connected.
func peerUser(conn *net.UnixConn) (uid uint32, ok bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	var credentials *unix.Ucred
	failed := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if failed != nil || err != nil || credentials.Uid == overflowUID {
		return 0, false
	}
	return credentials.Uid, true
}
