//go:build linux && !race

package backend

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// recv and send are sound. The pointer is converted in the argument list of a function of package syscall, which keeps
// the memory alive and in place for the call (rule 4 of unsafe.Pointer). The kernel gets the length of the same slice and
// does not keep the pointer. The descriptor is non-blocking, and it stays open because the caller is in a call of RawConn.

// recv reads from socket fd. n is 0 at the end of the stream.
func recv(fd uintptr, b []byte) (n int, errno syscall.Errno) {
	return call(unix.SYS_RECVFROM, fd, b, 0)
}

// send writes to socket fd. For a broken connection it returns an error; MSG_NOSIGNAL prevents SIGPIPE.
func send(fd uintptr, b []byte) (n int, errno syscall.Errno) {
	return call(unix.SYS_SENDTO, fd, b, unix.MSG_NOSIGNAL)
}

func call(number, fd uintptr, b []byte, flags uintptr) (n int, errno syscall.Errno) {
	for {
		r, _, e := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != syscall.EINTR {
			return 0, e
		}
	}
}
