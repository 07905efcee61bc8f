//go:build linux

package engine

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A peer with pending output must receive Config.Limits.MinWriteRate bytes a second, on average over each WriteGrace. Otherwise
// it is cut off. Only bytes that the peer's system has acknowledged count as received. The room in the socket's buffer shows
// progress too rarely, because that buffer may hold megabytes.
//
// A connection at its loop is judged by tooSlow, at the tick of its pending output. An away connection is judged by the meter of
// the goroutine that waits to send.

// unsent returns the number of bytes written to the socket that the peer has not acknowledged, or 0 if that is unknown.
func (c *Conn) unsent() int64 {
	n, err := unix.IoctlGetInt(int(c.fd), unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return int64(n)
}

// takesEnough reports whether a peer that received the given number of bytes in WriteGrace may keep its connection.
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

// A meter measures the bytes that a peer receives while a goroutine waits to send more. Only the time of such waits counts, so a
// stream may pause.
type meter struct {
	waited time.Duration // in the present period
	unsent int64         // Conn.unsent at the start of the period
	moved  int64         // bytes written to the socket since
}

// awaitRoom waits until the connection's socket has room, at most until the given time of the engine's clock. If until is 0, it
// waits as long as the peer receives enough. It may return early.
func (c *Conn) awaitRoom(until int64) error {
	if c.ended() {
		c.flags |= flagCloseNow
		return ErrNoRoom
	}
	c.wantOut()
	c.SetWorking(false)
	defer c.SetWorking(true)
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
	// Any other error means that the period is over. The code below learns that from the clock, too.
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

// noteSlow counts a slow peer that is cut off.
func (e *Engine) noteSlow(c *Conn) {
	if n, due := e.cfg.Shed.Note(admission.SlowReader); due {
		e.cfg.Logger.Warn("engine: clients cut off: they took their answers too slowly", "latest", c.RemoteAddr(),
			"bytesPerSecond", max(e.cfg.MinWriteRate, 0), "over", e.cfg.WriteGrace, "count", n)
	}
}
