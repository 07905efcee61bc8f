//go:build linux

package edge_test

import (
	"bytes"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

const request = "GET / HTTP/1.1\r\nHost: api.example\r\nOrigin: " + origin + "\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n"

// A load sends requests to a server over some connections, one at a time on each. It does not read the fields of answers, so
// its own cost for a request, and with it the number of concurrent requests, does not depend on the measured variant.
type load struct {
	epoll int
	conns []net.Conn       // open connections
	got   map[int32][]byte // received bytes of an answer, by descriptor
	in    [4 << 10]byte    // read buffer
	ready [64]unix.EpollEvent
}

func connect(tb testing.TB, addr string) *load {
	tb.Helper()
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		tb.Fatal(err)
	}
	l := &load{epoll: epoll, got: map[int32][]byte{}}
	tb.Cleanup(func() {
		for _, conn := range l.conns {
			conn.Close()
		}
		unix.Close(epoll)
	})
	for range len(l.ready) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			tb.Fatal(err)
		}
		l.conns = append(l.conns, conn)
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			tb.Fatal(err)
		}
		if e := raw.Control(func(fd uintptr) {
			l.got[int32(fd)] = make([]byte, 0, len(l.in))
			err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
		}); e != nil || err != nil {
			tb.Fatal(e, err)
		}
	}
	return l
}

// run sends requests for the duration d and returns the number of answers. It waits for all answers.
func (l *load) run(tb testing.TB, d time.Duration) (answered int) {
	tb.Helper()
	open := 0
	ask := func(fd int32) {
		if n, err := unix.Write(int(fd), []byte(request)); err != nil || n != len(request) {
			tb.Fatalf("sent only %d bytes of a request: %v", n, err)
		}
		open++
	}
	end := time.Now().Add(d)
	for fd := range l.got {
		ask(fd)
	}
	for open > 0 {
		n, err := unix.EpollWait(l.epoll, l.ready[:], 10_000)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			tb.Fatalf("no answer in 10 s: %v", err)
		}
		more := time.Now().Before(end)
		for _, event := range l.ready[:n] {
			n, err := unix.Read(int(event.Fd), l.in[:])
			if err != nil || n == 0 {
				tb.Fatalf("got an answer of %d bytes, error %v", n, err)
			}
			got := append(l.got[event.Fd], l.in[:n]...)
			if !bytes.HasSuffix(got, []byte(hello)) {
				l.got[event.Fd] = got
				continue
			}
			if !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
				tb.Fatalf("got answer %q", got)
			}
			l.got[event.Fd] = got[:0]
			open--
			answered++
			if more {
				ask(event.Fd)
			}
		}
	}
	return answered
}

// onLoadCore moves the calling goroutine to the core of the load, if there are two cores, until end is called.
func onLoadCore(tb testing.TB) (end func()) {
	tb.Helper()
	cores, pinned := proc.Assign()
	if !pinned {
		return func() {}
	}
	runtime.LockOSThread()
	var all, set unix.CPUSet
	for _, core := range cores.Load {
		set.Set(core)
	}
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		tb.Fatal(err)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		tb.Fatal(err)
	}
	return func() {
		_ = unix.SchedSetaffinity(0, &all) // without this, the thread would end with the goroutine
		runtime.UnlockOSThread()
	}
}
