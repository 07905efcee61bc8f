//go:build unix

package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A process has one Run at a time. A Run after another has ended is allowed.
func TestSecondRunPanics(t *testing.T) {
	ready := make(chan struct{})
	config := dunlin.Config{Addr: "127.0.0.1:0", Process: dunlin.ProcessConfig{DisableRestart: true}, Ready: func(net.Addr, dunlin.Engine) { ready <- struct{}{} }}
	first, second := dunlin.New(config), dunlin.New(dunlin.Config{Addr: "127.0.0.2:0"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	<-ready
	func() {
		defer func() {
			got := fmt.Sprint(recover())
			for _, part := range []string{"127.0.0.1:0", "127.0.0.2:0", "process_test.go", "ListenAndServe"} {
				suite.WantContains(t, "the panic", got, part)
			}
		}()
		_ = second.Run(ctx)
	}()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-ready; cancel() }()
	if err := dunlin.New(config).Run(ctx); err != nil {
		t.Errorf("second Run after the end of the first: %v", err)
	}
}

// freeAddress returns an address without a listener. On Linux no other program uses its IP address: on 127.0.0.1 the system may
// give the port to a connection before the service listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	host := "127.0.0.1"
	if runtime.GOOS == "linux" { // all of 127.0.0.0/8 is local there
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254))
	}
	ln, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// wantPID fails the test unless the service answers with the wanted app and process.
func wantPID(t *testing.T, addr, want string) {
	t.Helper()
	if _, body := suite.Get(t, clientNew(t, nil), "http://"+addr+"/pid"); body != want {
		t.Errorf("address %s: got app and process %q, want %q", addr, body, want)
	}
}

// A restart gives the listener of Run to the app of its address, even if another app runs first.
func TestRestartSeparatesAddresses(t *testing.T) {
	for _, before := range []string{"127.0.0.1:0", freeAddress(t)} {
		addr := freeAddress(t)
		s := startService(t, []string{"TEST_ENGINE=auto", "TEST_ADDR=" + addr, "TEST_RUN_BEFORE=" + before})
		pid, got := s.serving()
		for range 2 {
			if got != addr {
				t.Fatalf("serves %s, want %s", got, addr)
			}
			var next int
			s.signal(pid, syscall.SIGHUP)
			for range 2 { // the old process may end first
				if line := s.await("serving", fmt.Sprintf("ended %d", pid)); !strings.HasPrefix(line, "<nil>") {
					if _, err := fmt.Sscan(line, &next, &got); err != nil {
						t.Fatal(err)
					}
				}
			}
			pid = next
			wantPID(t, addr, strconv.Itoa(pid))
		}
		s.signal(pid, syscall.SIGTERM)
		s.end()
	}
}

// The listeners of ListenAndServe are handed over to the app of their address.
func TestRestartHandsOnListenAndServe(t *testing.T) {
	beside := freeAddress(t)
	s := startService(t, []string{"TEST_ENGINE=auto", "TEST_LISTEN=" + beside})
	pids := s.both()
	for range 2 {
		s.signal(pids.pid, syscall.SIGHUP)
		next := s.both(fmt.Sprintf("ended %d", pids.pid))
		if next.addr != pids.addr {
			t.Fatalf("serves %s, want %s", next.addr, pids.addr)
		}
		pids = next
		wantPID(t, pids.addr, strconv.Itoa(pids.pid))
		wantPID(t, beside, "other")
	}
	s.signal(pids.pid, syscall.SIGTERM)
	s.end()
}

type both struct {
	pid  int
	addr string
}

// both waits until both apps of a process serve. They may serve in any order, and other lines may precede them.
func (s *service) both(others ...string) (b both) {
	s.t.Helper()
	for range 2 + len(others) {
		line := s.await(append(others, "serving", "beside")...)
		if strings.HasPrefix(line, "<nil>") { // Run has ended
			continue
		}
		if _, err := fmt.Sscan(line, &b.pid, &b.addr); err != nil {
			var pid int
			if _, err := fmt.Sscan(line, &pid); err != nil {
				s.t.Fatalf("other app: got line %q", line)
			}
		}
	}
	return b
}

// A listener for which the new process has no app is closed.
func TestUnclaimedListenerIsClosed(t *testing.T) {
	beside, gone := freeAddress(t), filepath.Join(t.TempDir(), "gone")
	s := startService(t, []string{"TEST_ENGINE=auto", "TEST_LISTEN=" + beside, "TEST_NO_LISTEN=" + gone, "TEST_UNCLAIMED=1ms"})
	first := s.both()
	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.signal(first.pid, syscall.SIGHUP)
	next, _ := s.serving()
	s.await(fmt.Sprintf("log %d an inherited listener is closed: it is bound to no address of this process, and not named http, https or inner", next))
	s.signal(next, syscall.SIGTERM)
	s.end()
}

// An app gets the systemd sockets of its addresses, and those with their names.
func TestSocketActivationByAddress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	named, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	namedFile, err := named.File()
	if err != nil {
		t.Fatal(err)
	}
	defer namedFile.Close()
	own, foreign := suite.Listen(t), suite.Listen(t)
	addr := own.Addr().String()
	s := startService(t, []string{
		"TEST_ENGINE=auto", "TEST_ADDR=" + addr, "LISTEN_FDS=3", "LISTEN_FDNAMES=metrics.socket:http:users.socket",
	}, file(t, foreign), namedFile, file(t, own))
	pid, first := s.serving()
	_, second := s.serving()
	if got := [2]string{first, second}; got != [2]string{path, addr} {
		t.Errorf("serves %q", got)
	}
	s.await(fmt.Sprintf("log %d an inherited listener is closed: it is bound to no address of this process, and not named http, https or inner", pid))
	wantPID(t, addr, strconv.Itoa(pid))
	c := suite.Client(t, nil, suite.HTTP1)
	c.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	if _, body := suite.Get(t, c, "http://socket/pid"); body != strconv.Itoa(pid) {
		t.Errorf("unix socket: got process %q", body)
	}
	// The next process gets the same sockets.
	s.signal(pid, syscall.SIGHUP)
	next, first := s.serving()
	if _, second := s.serving(); first != path || second != addr {
		t.Errorf("next process: got addresses %s and %s", first, second)
	}
	s.signal(next, syscall.SIGTERM)
	s.end()
}
