//go:build linux

package engine

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A peer that has output to take must take Config.MinWriteRate of it, on average
// over each WriteGrace, or it is cut off. What it has taken is what its system has
// confirmed: a socket that has room again would show progress only now and then,
// for its buffer may hold megabytes.
//
// On its loop a connection is judged by tooSlow, when the tick of its pending
// output comes; away from it, by the meter of the goroutine that waits to send.

// unsent returns how many bytes that were written to the socket its peer has not
// confirmed; 0 when that is unknown.
func (c *Conn) unsent() int64 {
	n, err := unix.IoctlGetInt(int(c.fd), unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return int64(n)
}

// takesEnough reports whether a peer that took so many bytes in WriteGrace may
// keep its connection.
func (e *Engine) takesEnough(taken int64) bool { return taken > 0 && taken >= e.graceBytes }

// tooSlow judges a peer with pending output at tick now, and sets the time of the
// next judgement.
func (c *Conn) tooSlow(e *Engine, now uint32) bool {
	q := c.out
	left := q.bytes + c.unsent()
	if !e.takesEnough(q.mark - left) {
		e.noteSlow(c)
		return true
	}
	q.mark, q.check = left, now+e.graceTicks
	return false
}

// A meter measures what a peer takes while a goroutine waits to send it more.
// Only that time counts, so that a stream may pause.
type meter struct {
	waited time.Duration // in the present period
	unsent int64         // Conn.unsent when it began
	moved  int64         // bytes given to the socket since
}

// awaitRoom waits until the connection's socket has room: until a time of the
// engine's clock, or with until 0 for as long as the peer takes enough. It may
// return early.
func (c *Conn) awaitRoom(until int64) error {
	if c.ended() {
		c.flags |= flagCloseNow
		return ErrNoRoom
	}
	c.wantOut()
	c.endProbe()
	c.Working(false)
	defer c.Working(true)
	if until != 0 {
		return c.block(toWrite, until)
	}
	e, m := c.driver.engine, &c.driver.taking
	if m.waited == 0 {
		m.unsent, m.moved = c.unsent(), 0
	}
	start := e.now()
	err := c.block(toWrite, start+int64(max(e.cfg.WriteGrace-m.waited, 1)))
	m.waited += time.Duration(e.now() - start)
	if err == ErrRetimed {
		return err
	}
	// Any other error says that the period is over, which the clock says as well.
	if m.waited < e.cfg.WriteGrace {
		return nil
	}
	m.waited = 0
	if e.takesEnough(m.unsent + m.moved - c.unsent()) {
		return nil
	}
	e.noteSlow(c)
	return fmt.Errorf("engine: write: the peer takes fewer than %d bytes a second: %w", max(e.cfg.MinWriteRate, 0), os.ErrDeadlineExceeded)
}

// noteSlow counts a peer that is cut off.
func (e *Engine) noteSlow(c *Conn) {
	if n, due := e.cfg.Shed.Note(admission.SlowReader); due {
		e.cfg.Logger.Warn("engine: clients cut off: they took their answers too slowly", "latest", c.RemoteAddr(),
			"bytesPerSecond", max(e.cfg.MinWriteRate, 0), "over", e.cfg.WriteGrace, "count", n)
	}
}
