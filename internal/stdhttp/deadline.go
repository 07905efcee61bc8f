package stdhttp

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A readDeadline is the read deadline of a connection. net/http changes it about six times for each request, nearly
// always to a later time. To avoid the cost, the deadline of the socket stays as it is. When the deadline of the
// socket ends a read too early, it is replaced by the deadline that net/http has set, and the read continues.
//
// Once for each request net/http interrupts the read that detects a disconnect. This read has usually not begun. In
// that case the method begin ends the read, and no deadline is set on the socket.
type readDeadline struct {
	mu      sync.Mutex
	wanted  time.Time // deadline that net/http has set last, zero for none
	set     time.Time // deadline of the socket: not after wanted, unless it interrupts a read; zero for none
	readers int       // number of reads that a deadline would end
	direct  bool      // the socket always has the wanted deadline
}

// errInterrupted is the error of a read that was interrupted before it began.
var errInterrupted error = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}

// want sets the deadline of c to t. Zero means no deadline. If t is zero and about is positive, want may set the
// deadline of the socket to the time about from now, because a later deadline is likely to follow soon.
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

// leaves reports whether the deadline of the socket can stay if t is wanted.
func (d *readDeadline) leaves(t time.Time) bool {
	switch {
	case d.direct:
		return false
	case d.readers == 0 && interrupts(t):
		return true // the method begin ends the read
	case t.IsZero() && d.set.IsZero():
		return true
	}
	return !d.set.IsZero() && !interrupts(d.set) && (t.IsZero() || !t.Before(d.set))
}

// renew does the work of want after the deadline of the socket has expired.
func (d *readDeadline) renew(c net.Conn, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	return d.put(c, t)
}

// interrupts reports whether a deadline ends a read immediately. net/http interrupts reads with times shortly after
// the Unix epoch.
func interrupts(t time.Time) bool { return !t.IsZero() && t.Unix() < 1<<20 }

// begin must be called before a read. It returns false if the read was already interrupted.
func (d *readDeadline) begin() bool {
	d.mu.Lock()
	begins := !interrupts(d.wanted) || d.direct || interrupts(d.set)
	if begins {
		d.readers++
	}
	d.mu.Unlock()
	return begins
}

// end must be called after a read for which begin returned true.
func (d *readDeadline) end() {
	d.mu.Lock()
	d.readers--
	d.mu.Unlock()
}

func (d *readDeadline) put(c net.Conn, t time.Time) error {
	d.set = t
	return c.SetReadDeadline(t)
}

// early reports whether a read of c ended before the wanted deadline, and sets the wanted deadline. A read that the
// drain has interrupted stays interrupted.
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

// release sets the wanted deadline on the socket, for code that uses the socket directly.
func (d *readDeadline) release(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.direct && !d.set.Equal(d.wanted) {
		_ = d.put(c, d.wanted) // the connection may already be closed
	}
	d.direct = true
}

// read reads from the connection until the wanted deadline.
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
