package stdhttp

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A readDeadline is the read deadline of a connection. net/http sets it about six times per request, nearly always to
// a later time. The deadline in force is left to expire: a read that it ends early sets the rest and continues. Once
// per request net/http interrupts the read that detects a disconnect. That read has rarely begun. It then ends before
// it begins, and no deadline is set.
type readDeadline struct {
	mu      sync.Mutex
	wanted  time.Time // zero for none
	set     time.Time // in force on the socket: at most wanted, unless it interrupts a read; zero for none
	readers int       // reads that a deadline would end
	direct  bool      // the socket always has the wanted deadline
}

// errInterrupted is the error of a read interrupted before it began.
var errInterrupted error = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}

// want sets the deadline of c to t; zero means none. Instead of none, a deadline after about the given time is set,
// close to the next wanted one.
func (d *readDeadline) want(c net.Conn, t time.Time, about time.Duration) error {
	d.mu.Lock() // six times per request: no defer
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

// leaves reports whether the deadline in force suffices if t is wanted.
func (d *readDeadline) leaves(t time.Time) bool {
	switch {
	case d.direct:
		return false
	case d.readers == 0 && interrupts(t):
		return true // begin handles it
	case t.IsZero() && d.set.IsZero():
		return true
	}
	return !d.set.IsZero() && !interrupts(d.set) && (t.IsZero() || !t.Before(d.set))
}

// renew is want after the deadline in force has expired.
func (d *readDeadline) renew(c net.Conn, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	return d.put(c, t)
}

// interrupts reports whether a deadline ends a read at once. net/http uses times soon after the Unix epoch for that.
func interrupts(t time.Time) bool { return !t.IsZero() && t.Unix() < 1<<20 }

// begin is called before a read. It returns false if the read is interrupted already.
func (d *readDeadline) begin() bool {
	d.mu.Lock()
	begins := !interrupts(d.wanted) || d.direct || interrupts(d.set)
	if begins {
		d.readers++
	}
	d.mu.Unlock()
	return begins
}

// end is called after a read.
func (d *readDeadline) end() {
	d.mu.Lock()
	d.readers--
	d.mu.Unlock()
}

func (d *readDeadline) put(c net.Conn, t time.Time) error {
	d.set = t
	return c.SetReadDeadline(t)
}

// early reports whether a read of c ended before its deadline, and sets the rest. A read interrupted by the drain
// stays interrupted.
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

// release sets the wanted deadline for users of the bare socket.
func (d *readDeadline) release(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.direct && !d.set.Equal(d.wanted) {
		_ = d.put(c, d.wanted) // may be closed already
	}
	d.direct = true
}

// read reads from the connection until its deadline.
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
