//go:build linux

package engine

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A peer with pending output must take Config.Limits.MinWriteRate of it, on average over each WriteGrace, or it is cut off. Only bytes
// that the peer's system has acknowledged count as taken. The room in the socket's buffer would show progress only now and
// then, because that buffer may hold megabytes.
//
// On its loop, tooSlow judges a connection at the tick of its pending output. Away from the loop, the meter of the goroutine
// that waits to send judges it.

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

// A meter measures the bytes that a peer takes while a goroutine waits to send more. Only that time counts, so a stream may
// pause.
type meter struct {
	waited time.Duration // in the present period
	unsent int64         // Conn.unsent at the start of the period
	moved  int64         // bytes written to the socket since
}

// awaitRoom waits until the connection's socket has room. It waits until the given time of the engine's clock, or, if until is
// 0, while the peer takes enough. It may return early.
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
	// Any other error means that the period is over, which the clock shows too.
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
