package stdhttp

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// acceptNow returns a connection from the backlog of a listener, or an error if the backlog is empty. A deadline of
// the listener that has expired has no effect.
func acceptNow(ln net.Listener) (net.Conn, error) {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var acceptErr error
	err = raw.Control(func(listener uintptr) {
		for again := true; again; {
			fd, _, acceptErr = unix.Accept4(int(listener), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			again = acceptErr == unix.EINTR || acceptErr == unix.ECONNABORTED
		}
	})
	if err = errors.Join(err, acceptErr); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close()
	return net.FileConn(f) // FileConn duplicates the descriptor
}
