//go:build linux

package engine_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

func TestConnectionsAreSpreadEvenly(t *testing.T) {
	s := serve(t, engine.Config{Loops: 4}, newLineHandler())
	for i := range 200 {
		c := s.dial()
		c.send("echo x\n")
		c.want("x")
		per := s.Stats().ConnsPerLoop
		low, high := per[0], per[0]
		for _, n := range per {
			low, high = min(low, n), max(high, n)
		}
		if high-low > 2+high/8 {
			t.Fatalf("after %d connections: %v per loop", i+1, per)
		}
	}
}

func TestMaxConns(t *testing.T) {
	s := serve(t, engine.Config{MaxConns: 3}, newLineHandler())
	var open []*client // oldest first
	for range 3 {
		c := s.dial()
		c.send("echo in\n")
		c.want("in")
		open = append(open, c)
	}
	for range 10 {
		waiting := s.dial() // in the backlog
		waiting.send("echo in at last\n")
		eventually(t, "accepting pauses", func() bool { return s.Stats().AcceptPauses > 0 })
		if n := s.Stats().Conns; n > 3 {
			t.Fatalf("%d connections, want at most 3", n)
		}
		open[0].Close()
		waiting.want("in at last")
		open = append(open[1:], waiting)
	}
}

func TestSeveralListeners(t *testing.T) {
	h := newLineHandler()
	h.commands["address"] = func(d *engine.Driver, c *engine.Conn, _ string) {
		answer(d, fmt.Sprint(c.RemoteAddr(), " ", c.LocalAddr()))
	}
	s := serve(t, engine.Config{}, h)
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	for _, addr := range []net.Addr{s.addr, ln.Addr()} {
		c := (&server{s.Engine, t, addr}).dial()
		c.send("address\n")
		c.want(c.LocalAddr().String() + " " + c.RemoteAddr().String())
	}
}

// TestOutOfDescriptors runs itself in a process of its own, which it deprives
// of file descriptors.
func TestOutOfDescriptors(t *testing.T) {
	const variable = "ENGINE_TEST_OUT_OF_DESCRIPTORS"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOutOfDescriptors$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "accepting pauses") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	s := serve(t, engine.Config{Loops: 1}, newLineHandler())
	before := s.dial()
	before.send("echo before\n")
	before.want("before")
	waiting := s.dialLast()
	eventually(t, "accepting pauses", func() bool { return s.Stats().AcceptPauses > 0 })
	waiting.send("echo waited\n")
	before.send("echo still\n")
	before.want("still")
	before.Close() // frees two descriptors and ends the pause
	waiting.want("waited")

	// And without anybody closing: the pause ends by itself.
	pauses := s.Stats().AcceptPauses
	again := s.dialLast()
	eventually(t, "accepting pauses again", func() bool { return s.Stats().AcceptPauses > pauses })
	setDescriptorLimit(t, 1000)
	s.AdvanceClock(time.Second)
	again.send("echo again\n")
	again.want("again")
}

// dialLast connects with the last descriptor the process may open.
func (s *server) dialLast() *client {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	unix.Close(fd)
	setDescriptorLimit(s.t, uint64(fd)+1)
	return s.dial()
}

func setDescriptorLimit(t testing.TB, n uint64) {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: 1000}); err != nil {
		t.Fatal(err)
	}
}
