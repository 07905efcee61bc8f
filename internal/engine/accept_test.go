//go:build linux

package engine_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
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
			t.Fatalf("after %d connections: got %v per loop", i+1, per)
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

func TestMaxLoopConns(t *testing.T) {
	var shed admission.Shed
	s := serve(t, engine.Config{Loops: 2, MaxLoopConns: 2, Shed: &shed, LoopRefusal: []byte("full\n")}, newLineHandler())
	var open []*client
	for range 4 {
		c := s.dial()
		c.send("echo in\n")
		c.want("in")
		open = append(open, c)
	}
	for range 10 {
		refused := s.dial()
		refused.want("full")
		refused.wantEOF()
		open[0].Close()
		eventually(t, "a connection closes", func() bool { return s.Stats().Conns == 3 })
		next := s.dial()
		next.send("echo in\n")
		next.want("in")
		open = append(open[1:], next)
	}
	if n := shed.Count(admission.LoopLimit); n != 10 {
		t.Errorf("%d refused by the count, want 10", n)
	}
	if s := s.Stats(); s.Conns != 4 || s.ConnsPerLoop[0] != 2 || s.Accepts != 14 || s.AcceptPauses != 0 {
		t.Errorf("got %+v; want 4 connections, 2 on each loop, of 14", s)
	}
}

func TestMaxConnsPerAddress(t *testing.T) {
	var shed admission.Shed
	addresses := admission.NewAddresses(2)
	s := serve(t, engine.Config{Loops: 2, Addresses: addresses, Shed: &shed, AddressRefusal: []byte("enough\n")}, newLineHandler())
	from := func(ip string) *client {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).Dial("tcp", s.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		c := &client{conn, t, bufio.NewReader(conn)}
		t.Cleanup(func() { c.Close() })
		return c
	}
	var open []*client
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"} {
		c := from(ip)
		c.send("echo in\n")
		c.want("in")
		open = append(open, c)
	}
	for _, ip := range []string{"127.0.0.1", "127.0.0.2"} {
		refused := from(ip)
		refused.want("enough")
		refused.wantEOF()
	}
	if n := shed.Count(admission.AddressLimit); n != 2 {
		t.Errorf("%d refused by the count, want 2", n)
	}
	open[0].Close() // from 127.0.0.1
	eventually(t, "a connection closes", func() bool { return s.Stats().Conns == 3 })
	c := from("127.0.0.1")
	c.send("echo in\n")
	c.want("in")
	for _, c := range append(open, c) {
		c.Close()
	}
	eventually(t, "no address is remembered", func() bool { return addresses.Len() == 0 })
}

// Peers without an address are not counted together.
func TestUnixPeersHaveNoAddressLimit(t *testing.T) {
	s := serveUnix(t, engine.Config{Addresses: admission.NewAddresses(1)}, newLineHandler())
	for range 3 {
		c := s.dial()
		c.send("echo in\n")
		c.want("in")
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

// At the bound of connections, idle ones are closed at once for a new client, regardless of when the last one was accepted.
func TestIdleConnectionsAreClosedForNewOnes(t *testing.T) {
	s := serve(t, engine.Config{Loops: 1, Shed: new(admission.Shed), MaxConns: 4, OpenTimeout: time.Minute}, newLineHandler())
	for range 4 {
		c := s.dial()
		c.send("echo first\n")
		c.want("first")
	}
	if n := s.Stats().AcceptPauses; n != 0 {
		t.Errorf("accepting has paused %d times, though no client waited", n)
	}
	s.AdvanceClock(10 * time.Second)
	late := s.dial()
	late.send("echo late\n")
	late.want("late")
}

// An address with most connections does not keep out others by using each of them several times a second.
func TestActiveConnectionsOfLargestAddressAreClosed(t *testing.T) {
	h := newLineHandler()
	h.commands["use"] = func(d *engine.Driver, c *engine.Conn, args string) {
		c.SetDeadline(time.Minute)
		answer(d, args)
	}
	s := serve(t, engine.Config{Loops: 1, Shed: new(admission.Shed), MaxConns: 4, OpenTimeout: time.Minute}, h)
	var used []*client
	for range 4 {
		used = append(used, s.dial())
	}
	var late *client
	for range 20 {
		for _, c := range used {
			_, _ = c.Write([]byte("use again\n"))
			if got, err := c.r.ReadString('\n'); err != nil || got != "again\n" { // it was closed
				late.send("echo late\n")
				late.want("late")
				return
			}
		}
		if late == nil {
			late = s.dial()
			eventually(t, "accepting pauses", func() bool { return s.Stats().AcceptPauses > 0 })
		}
		s.AdvanceClock(300 * time.Millisecond)
	}
	t.Error("none was closed for a client of the same address that waits")
}

// TestAcceptWithoutDescriptors runs itself in another process, in which it uses up all file descriptors.
func TestAcceptWithoutDescriptors(t *testing.T) {
	const variable = "ENGINE_TEST_OUT_OF_DESCRIPTORS"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAcceptWithoutDescriptors$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "accepting pauses") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	// Meanwhile no other descriptor is opened, and no idle connection is closed to free one.
	s := serve(t, engine.Config{Loops: 1, Shed: new(admission.Shed), OpenTimeout: -1}, newLineHandler())
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

	// The pause also ends by itself, without a close.
	pauses := s.Stats().AcceptPauses
	again := s.dialLast()
	eventually(t, "accepting pauses again", func() bool { return s.Stats().AcceptPauses > pauses })
	setDescriptorLimit(t, 1000)
	s.AdvanceClock(time.Second)
	again.send("echo again\n")
	again.want("again")
}

// dialLast connects with the last descriptor that the process may open.
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

// Connections that were made before the engine had the listener have its options, too.
func TestSocketOptionsOfEarlyConnections(t *testing.T) {
	onEachListener(t, func(t *testing.T, listen func(*testing.T) net.Listener) {
		ln := listen(t)
		const early = 3
		var conns []*client
		for range early {
			conn, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, &client{conn, t, bufio.NewReader(conn)})
			defer conn.Close()
		}
		h := newLineHandler()
		h.commands["options"] = func(d *engine.Driver, c *engine.Conn, _ string) {
			answer(d, fmt.Sprint(c.NoDelay(), c.Probed()))
		}
		s := serveOn(t, engine.Config{KeepAlive: time.Minute}, h, ln)
		for _, c := range append(conns, s.dial()) {
			c.send("options\n")
			c.want("true true")
		}
	})
}
