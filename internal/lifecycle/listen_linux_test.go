package lifecycle_test

import (
	"net"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/lifecycle"
	"golang.org/x/sys/unix"
)

// Listen returns the same listener as net.Listen, with the same options, and fails with the same errors.
func TestListenIsNetListen(t *testing.T) {
	for _, addr := range []string{
		"127.0.0.1:0", "[::1]:0", ":0", "0.0.0.0:0", "[::]:0", "localhost:0", "[::ffff:127.0.0.1]:0", "",
		"127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "192.0.2.1:0", "[2001:db8::1]:0", "127.0.0.1:no-such-service", "[::1%lo]:0",
	} {
		want, wantErr := net.Listen("tcp", addr)
		got, gotErr := lifecycle.Listen(addr)
		if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
			t.Fatalf("%q: error %v, net.Listen's is %v", addr, gotErr, wantErr)
		}
		if gotErr != nil {
			continue
		}
		defer want.Close()
		defer got.Close()
		gotIP, _, _ := net.SplitHostPort(got.Addr().String())
		wantIP, _, _ := net.SplitHostPort(want.Addr().String())
		if gotIP != wantIP {
			t.Errorf("%q: got address %s, net.Listen uses %s", addr, got.Addr(), want.Addr())
		}
		if g, w := optionsOf(t, got), optionsOf(t, want); g != w {
			t.Errorf("%q: got options %+v, net.Listen uses %+v", addr, g, w)
		}
		c, err := net.Dial("tcp", got.Addr().String())
		if err != nil {
			t.Fatalf("%q: %v", addr, err)
		}
		c.Close()
	}
}

func TestListenOnUsedAddress(t *testing.T) {
	ln, err := lifecycle.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := lifecycle.Listen(ln.Addr().String()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("second Listen: %v", err)
	}
}

// Programs disable MPTCP with GODEBUG.
func TestListenWithMultipathTCP(t *testing.T) {
	t.Setenv("GODEBUG", "multipathtcp=0")
	ln, err := lifecycle.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if p := optionsOf(t, ln).protocol; p != unix.IPPROTO_TCP {
		t.Errorf("got protocol %d, want TCP", p)
	}
}

// socketOptions are the options in which listeners can differ.
type socketOptions struct {
	domain, protocol, reuseAddr, v6Only, listens, closeOnExec, status int

	backlog uint32
}

func optionsOf(t *testing.T, ln net.Listener) (o socketOptions) {
	t.Helper()
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	get := func(fd, level, name int) int {
		n, err := unix.GetsockoptInt(fd, level, name)
		if err != nil {
			n = -1
		}
		return n
	}
	err = raw.Control(func(handle uintptr) {
		fd := int(handle)
		o = socketOptions{
			domain: get(fd, unix.SOL_SOCKET, unix.SO_DOMAIN), protocol: get(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL),
			reuseAddr: get(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR), v6Only: get(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY),
			listens: get(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN),
		}
		o.closeOnExec, _ = unix.FcntlInt(handle, unix.F_GETFD, 0)
		o.status, _ = unix.FcntlInt(handle, unix.F_GETFL, 0)
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			o.backlog = info.Sacked // for a listener, the size of its accept queue
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}
