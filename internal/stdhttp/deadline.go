package stdhttp

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A readDeadline is the read deadline of a connection. Net/http sets one some
// six times for each request, and nearly always to a later time. What is in force then
// is left to pass: a read that it ends before its time sets the rest and goes on.
// Once for each request net/http interrupts a read that looks whether the client has gone. That one has
// hardly ever begun: it ends before it does, and nothing is set.
type readDeadline struct {
	mu      sync.Mutex
	wanted  time.Time // zero: none
	set     time.Time // in force below, not after wanted unless that interrupts; zero: none
	readers int       // reads of the connection that a deadline would end
	direct  bool      // the one below is always the wanted one
}

// errInterrupted is the error of a read that was interrupted before it began.
var errInterrupted error = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}

// want makes t the deadline of c, zero for none. What is set in place of none is one
// after about the time that the next is going to have.
func (d *readDeadline) want(c net.Conn, t time.Time, about time.Duration) error {
	d.mu.Lock() // some six times for each request: without defer
	d.wanted = t
	if d.leaves(t) {
		d.mu.Unlock()
		return nil
	}
	if !d.direct && t.IsZero() && about > 0 {
		t = time.Now().Add(about)
	}
	err := d.put(c, t)
	d.mu.Unlock()
	return err
}

// leaves reports whether what is in force will do where t is wanted.
func (d *readDeadline) leaves(t time.Time) bool {
	switch {
	case d.direct:
		return false
	case d.readers == 0 && interrupts(t):
		return true // begin knows
	case t.IsZero() && d.set.IsZero():
		return true
	}
	return !d.set.IsZero() && !interrupts(d.set) && (t.IsZero() || !t.Before(d.set))
}

// renew is want after the one before has passed.
func (d *readDeadline) renew(c net.Conn, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	return d.put(c, t)
}

// interrupts reports whether a deadline is one that ends a read at once, as net/http
// sets them in the first days of the Unix epoch.
func interrupts(t time.Time) bool { return !t.IsZero() && t.Unix() < 1<<20 }

// begin is called before a read. It is false when that is interrupted already.
func (d *readDeadline) begin() bool {
	d.mu.Lock()
	begins := !interrupts(d.wanted) || d.direct || interrupts(d.set)
	if begins {
		d.readers++
	}
	d.mu.Unlock()
	return begins
}

// end is called after it.
func (d *readDeadline) end() {
	d.mu.Lock()
	d.readers--
	d.mu.Unlock()
}

func (d *readDeadline) put(c net.Conn, t time.Time) error {
	d.set = t
	return c.SetReadDeadline(t)
}

// early reports whether a read of c was ended before its time; it has that time
// set. What the drain has interrupted meanwhile stays so.
func (d *readDeadline) early(c *timedConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.idle.Load() == ending {
		return true
	}
	if d.direct || d.set.Equal(d.wanted) || !d.wanted.IsZero() && !d.wanted.After(time.Now()) {
		return false
	}
	return d.put(c.Conn, d.wanted) == nil
}

// release sets what is wanted, for those who know nothing of all this.
func (d *readDeadline) release(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.direct && !d.set.Equal(d.wanted) {
		_ = d.put(c, d.wanted) // the connection may be closed already
	}
	d.direct = true
}

// read reads from the connection, until its deadline.
func (c *timedConn) read(p []byte) (int, error) {
	for {
		if !c.reads.begin() {
			return 0, errInterrupted
		}
		n, err := c.Conn.Read(p)
		c.reads.end()
		if err == nil || n > 0 || !timedOutIO(err) {
			return n, err
		}
		switch {
		case c.idle.Load() == ending:
			if c.ended() {
				return 0, io.EOF
			}
		case !c.reads.early(c):
			return n, err
		}
	}
}

// setRead sets the read deadline.
func (c *timedConn) setRead(t time.Time) error { return c.reads.want(c.Conn, t, c.server.HeadTimeout) }
