//go:build unix

package lifecycle_test

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/suite"
)

// inner awaits the inner address of the next process.
func (s *service) inner() (pid int, addr string) {
	s.t.Helper()
	if _, err := fmt.Sscan(s.await("inner"), &pid, &addr); err != nil {
		s.t.Fatal(err)
	}
	return pid, addr
}

// wantApart fails the test unless the process serves its public and its inner routes only on their own addresses.
func wantApart(t *testing.T, public, inner string, pid int) {
	t.Helper()
	c := clientNew(t, nil)
	for url, want := range map[string]string{
		public + "/pid": strconv.Itoa(pid), inner + "/inner": strconv.Itoa(pid), public + "/inner": "404", inner + "/pid": "404",
	} {
		resp, body := suite.Get(t, c, "http://"+url)
		if resp.StatusCode != 200 {
			body = strconv.Itoa(resp.StatusCode)
		}
		if body != want {
			t.Errorf("%s: got %s, want %s", url, body, want)
		}
	}
}

// A restart hands over the listener of an inner address, even if the system chose its port.
func TestRestartHandsOnInnerAddress(t *testing.T) {
	for _, c := range []struct{ engine, addr string }{{"auto", freeAddress(t)}, {"std", freeAddress(t)}, {"auto", "127.0.0.1:0"}} {
		t.Run(c.engine+" "+c.addr, func(t *testing.T) {
			s := startService(t, []string{"TEST_ENGINE=" + c.engine, "TEST_INNER=" + c.addr})
			_, inner := s.inner()
			pid, public := s.serving()
			wantApart(t, public, inner, pid)
			s.signal(pid, syscall.SIGHUP)
			next, nextInner := s.inner()
			_, nextPublic := s.serving()
			if nextInner != inner || nextPublic != public || next == pid {
				t.Errorf("process %d serves %s and %s, process %d %s and %s", pid, public, inner, next, nextPublic, nextInner)
			}
			s.await("ended " + strconv.Itoa(pid))
			wantApart(t, public, inner, next)
			s.signal(next, syscall.SIGTERM)
			s.end()
		})
	}
}

// An inner address is served by the systemd socket that is bound to it, or has its name.
func TestSocketActivationOfInnerAddress(t *testing.T) {
	for _, name := range []string{"users-inner.socket", "inner"} {
		t.Run(name, func(t *testing.T) {
			public, inner := suite.Listen(t), suite.Listen(t)
			addr := inner.Addr().String()
			if name == "inner" {
				addr = freeAddress(t)
			}
			s := startService(t, []string{
				"TEST_ENGINE=auto", "TEST_ADDR=" + public.Addr().String(), "TEST_INNER=" + addr, "LISTEN_FDS=2", "LISTEN_FDNAMES=" + name + ":http",
			}, file(t, inner), file(t, public))
			pid, got := s.inner()
			if got != inner.Addr().String() {
				t.Errorf("got inner address %s, want %s", got, inner.Addr())
			}
			s.serving()
			wantApart(t, public.Addr().String(), got, pid)
			s.signal(pid, syscall.SIGTERM)
			s.end()
		})
	}
}
