//go:build linux

package stdhttp

import (
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (client, served net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	client, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	served, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = served.Close() })
	return client, served
}

// arrive sends text and waits until the system has received it.
func arrive(t *testing.T, client, served net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(client, text); err != nil {
		t.Fatal(err)
	}
	for unreadOf(served) == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
}

// A waitingConn calls at before a read, when net/http waits for a request, and after afterwards.
type waitingConn struct {
	net.Conn
	at, after func()
}

func (c *waitingConn) Read(p []byte) (int, error) {
	if c.at != nil {
		c.at()
	}
	n, err := c.Conn.Read(p)
	if c.after != nil {
		c.after()
	}
	return n, err
}

func (c *waitingConn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

func wantIdle(t *testing.T, c *timedConn, want uint32) {
	t.Helper()
	if got := c.idle.Load(); got != want {
		t.Errorf("state %d, want %d", got, want)
	}
}

// A connection that waits for a request is closed; a connection that may have a buffered request is not.
func TestEndIdle(t *testing.T) {
	for _, secure := range []bool{false, true} {
		_, served := pair(t)
		o := newOpenConns()
		below := &waitingConn{Conn: served}
		c := &timedConn{Conn: below, server: patient, secure: secure}
		o.add(nil)
		o.add(c)
		if got := o.endIdle(false, 0); got != (rest{}) { // a new one stays open
			t.Errorf("a new one: got %+v", got)
		}
		if got := o.endIdle(true, 0); got != (rest{idle: 1}) {
			t.Errorf("before it is read: got %+v", got)
		}
		wantIdle(t, c, between)
		c.setIdle(busy)
		if got := o.endIdle(true, 0); got != (rest{}) {
			t.Errorf("a busy one: got %+v", got)
		}
		c.asked()
		c.setIdle(between)
		below.at = func() {
			wantIdle(t, c, waiting)
			if got := o.endIdle(false, 0); got != (rest{idle: 1}) {
				t.Errorf("one that waits: got %+v", got)
			}
			wantIdle(t, c, ending)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("Read = %d, %v", n, err)
		}
		if _, err := served.Write([]byte("x")); errors.Is(err, net.ErrClosed) == secure {
			t.Errorf("TLS %v: Write: %v", secure, err)
		}
		o.remove(c)
		o.remove(nil)
		if o.count.Load() != 0 || o.unasked.Load() != 0 || len(o.all) != 0 {
			t.Errorf("%d connections, %d without a request, %d remembered", o.count.Load(), o.unasked.Load(), len(o.all))
		}
	}
}

// A connection that is ended in the middle of a request head is closed, unless the rest has been read meanwhile: then its next
// reads are not interrupted.
func TestEndWithinAHead(t *testing.T) {
	for _, complete := range []bool{false, true} {
		client, served := pair(t)
		c := &timedConn{Conn: served, server: patient}
		c.setIdle(begun)
		c.end(waiting)
		wantIdle(t, c, begun)
		c.end(begun)
		wantIdle(t, c, ending)
		if !complete {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("Read = %d, %v", n, err)
			}
			continue
		}
		c.setIdle(busy)
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("Read = %d, %v", n, err)
		}
	}
}

// Received data is read, regardless of the moment of the drain's check.
func TestEndIdleKeepsReceivedRequests(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, c *timedConn, below *waitingConn, send func(string)){
		"it has come before": func(t *testing.T, c *timedConn, below *waitingConn, send func(string)) {
			below.at = func() {
				send("GET")
				c.end(waiting)
				wantIdle(t, c, waiting)
			}
		},
		"it comes while the read is interrupted": func(t *testing.T, c *timedConn, below *waitingConn, send func(string)) {
			below.at = func() {
				below.at = nil
				c.end(waiting)
				wantIdle(t, c, ending)
				send("GET")
			}
		},
		"it is read and not noted": func(t *testing.T, c *timedConn, below *waitingConn, send func(string)) {
			send("GET")
			below.after = func() {
				wantIdle(t, c, waiting)
				c.end(waiting)
				wantIdle(t, c, ending)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, served := pair(t)
			below := &waitingConn{Conn: served}
			c := &timedConn{Conn: below, server: patient}
			o := newOpenConns()
			o.add(c)
			c.asked()
			test(t, c, below, func(text string) { arrive(t, client, served, text) })
			p := make([]byte, 9)
			if n, err := c.Read(p); err != nil || string(p[:n]) != "GET" {
				t.Fatalf("Read = %q, %v", p[:n], err)
			}
			below.at, below.after = nil, nil
			wantIdle(t, c, begun)
			if got := o.endIdle(true, 0); got != (rest{begun: 1}) {
				t.Errorf("one with the beginning of a request: got %+v", got)
			}
			// The deadline was set by net/http.
			arrive(t, client, served, " / ")
			if n, err := c.Read(p); err != nil || string(p[:n]) != " / " {
				t.Errorf("Read = %q, %v", p[:n], err)
			}
			if !c.reads.set.Equal(c.reads.wanted) {
				t.Errorf("deadline %v, want %v", c.reads.set, c.reads.wanted)
			}
			wantIdle(t, c, begun)
		})
	}
}

// A read is also interrupted by the drain while another deadline is in force.
func TestEndIdleWithReadDeadline(t *testing.T) {
	_, served := pair(t)
	c := &timedConn{Conn: served, server: patient}
	c.setIdle(between)
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !timedOutIO(err) {
		t.Errorf("Read: %v", err)
	}
	if _, err := served.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

// After an answer the next request may be buffered: the connection stays open until a read shows otherwise.
func TestIdleWithBufferedRequest(t *testing.T) {
	_, served := pair(t)
	srv := NewService(patient).NewServer(nil)
	c := &timedConn{Conn: served, server: patient}
	for _, step := range []struct {
		state         http.ConnState
		idle          uint32
		unasked, left int64
	}{
		{http.StateNew, between, 1, 1}, {http.StateActive, busy, 1, 1}, {http.StateIdle, between, 0, 1}, {http.StateClosed, between, 0, 0},
	} {
		srv.count(c, step.state)
		srv.open.endIdle(true, 0)
		wantIdle(t, c, step.idle)
		if unasked, left := srv.open.unasked.Load(), srv.open.count.Load(); unasked != step.unasked || left != step.left {
			t.Errorf("%v: got %d connections, %d without a request", step.state, left, unasked)
		}
	}
}
