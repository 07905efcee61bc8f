//go:build linux

package engine

import (
	"math/bits"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the hot path. All of them return at once: their descriptors are non-blocking, or the call never waits (the
// calls that read a file only use data in memory). They need none of the bookkeeping with which the runtime gives the
// processor to another goroutine during a call that may block.
//
// Soundness of the unsafe uses in this file, except inet4 and inet6: the pointer is converted in the argument list
// of a syscall package function, which keeps the memory alive and in place for the call (unsafe.Pointer, rule 4). The kernel gets
// the length of the same slice or the size of the same struct, and keeps no pointer.

// base returns the address of b's memory. It is nil only if b is nil.
func base(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// recv reads from socket fd. It returns n = 0 at the end of the stream.
func recv(fd int32, b []byte) (n int, errno syscall.Errno) { return recvWith(fd, b, 0) }

// peek is recv without consuming the bytes.
func peek(fd int32, b []byte) (n int, errno syscall.Errno) { return recvWith(fd, b, unix.MSG_PEEK) }

func recvWith(fd int32, b []byte, flags uintptr) (n int, errno syscall.Errno) {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(base(b)), uintptr(len(b)), flags, 0, 0)
		if e == 0 {
			afterRead(fd)
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// send writes to socket fd. A broken connection causes an error, not a signal.
func send(fd int32, b []byte) (n int, errno syscall.Errno) {
	beforeWrite()
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(base(b)), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// gather holds the arguments of one sendmsg call.
type gather struct {
	iov [16]unix.Iovec
	msg unix.Msghdr
	n   int
}

// add appends b, which must not be empty, and reports whether there was room.
func (g *gather) add(b []byte) bool {
	if g.n == len(g.iov) {
		return false
	}
	g.iov[g.n].Base = unsafe.SliceData(b)
	g.iov[g.n].SetLen(len(b))
	g.n++
	return true
}

// send writes the added buffers to socket fd and forgets them.
func (g *gather) send(fd int32) (n int, errno syscall.Errno) {
	g.msg.Iov = &g.iov[0]
	g.msg.SetIovlen(g.n)
	beforeWrite()
	for {
		r, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&g.msg)), unix.MSG_NOSIGNAL)
		if e == unix.EINTR {
			continue
		}
		clear(g.iov[:g.n])
		g.n = 0
		if e != 0 {
			return 0, e
		}
		return int(r), 0
	}
}

// epollPoll fetches events without waiting. It returns 0 if there are none.
func epollPoll(epfd int32, events []unix.EpollEvent) int {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
		if e == 0 {
			return int(r)
		}
		if e != unix.EINTR {
			return 0
		}
	}
}

// accept accepts a connection from listening socket fd.
func accept(fd int32, addr *unix.RawSockaddrAny) (conn int32, errno syscall.Errno) {
	for {
		size := uint32(unix.SizeofSockaddrAny)
		r, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(addr)), uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		if e == 0 {
			return int32(r), 0
		}
		if e != unix.EINTR {
			return -1, e
		}
	}
}

// inet4 and inet6 return a socket address as the type of its family; both structs are smaller than RawSockaddrAny and have no
// stricter alignment.
func inet4(a *unix.RawSockaddrAny) *unix.RawSockaddrInet4 {
	return (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
}

func inet6(a *unix.RawSockaddrAny) *unix.RawSockaddrInet6 {
	return (*unix.RawSockaddrInet6)(unsafe.Pointer(a))
}

// closeFD closes a non-blocking descriptor.
func closeFD(fd int32) {
	beforeWrite() // the peer's read returns the end of the stream
	syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}

// shutdown shuts down the given directions of socket fd. If the peer has already closed, that is not an error.
func shutdown(fd int32, how int) {
	beforeWrite()
	syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), uintptr(how), 0)
}

// sendfileQuickly is sendfile for data in memory.
func sendfileQuickly(socket int32, file uintptr, n int) (int, error) {
	beforeWrite()
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_SENDFILE, uintptr(socket), file, 0, uintptr(n), 0, 0)
		if e == 0 {
			return int(r), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// resident reports whether the byte of file at offset is in memory. It also returns false if the file system cannot tell.
func resident(file uintptr, offset int64) bool {
	const half = bits.UintSize / 2
	low, high := uintptr(offset), uintptr(uint64(offset)>>half>>half)
	var b [1]byte
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	n, _, e := syscall.RawSyscall6(unix.SYS_PREADV2, file, uintptr(unsafe.Pointer(&iov)), 1, low, high, unix.RWF_NOWAIT)
	return e == 0 && n == 1
}

// voluntarySwitches returns how often the calling thread has gone to sleep (voluntary context switches).
func voluntarySwitches() int64 {
	var usage unix.Rusage
	syscall.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&usage)), 0)
	return int64(usage.Nvcsw)
}

// threadID returns the number of the calling thread.
func threadID() int64 {
	id, _, _ := syscall.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	return int64(id)
}
