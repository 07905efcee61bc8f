package stdhttp

import (
	"io"
	"net"
	"sync"
	"time"
)

// A readDeadline is the read deadline of a connection. Net/http sets one some
// five times for each request, and nearly always to a later time. What is in force then
// is left to pass: a read that it ends before its time sets the rest and goes on.
type readDeadline struct {
	mu     sync.Mutex
	wanted time.Time // zero: none
	set    time.Time // in force below, not after wanted; zero: none
	direct bool      // the one below is always the wanted one
}

// want makes t the deadline of c, zero for none. What is set in place of none is one
// after about the time that the next is going to have.
func (d *readDeadline) want(c net.Conn, t time.Time, about time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	lasts := !d.set.IsZero() && !interrupts(d.set)
	switch {
	case d.direct:
	case lasts && (t.IsZero() || !t.Before(d.set)), t.IsZero() && d.set.IsZero():
		return nil
	case t.IsZero() && about > 0:
		t = time.Now().Add(about)
	}
	return d.put(c, t)
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
func interrupts(t time.Time) bool { return t.Unix() < 1<<20 }

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
		n, err := c.Conn.Read(p)
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
