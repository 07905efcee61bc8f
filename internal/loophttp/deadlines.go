//go:build linux

package loophttp

import (
	"os"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// deadlines are the deadlines that a standard handler has set; zero for none. As on a net.Conn they apply at once, also to a
// Read or a Write that waits on another goroutine. wire.mu guards them.
type deadlines struct{ readBy, writeBy time.Time }

func (x *wire) setDeadline(writing bool, t time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.deadlines == nil {
		x.deadlines = new(deadlines)
	}
	if writing {
		x.deadlines.writeBy = t
	} else {
		x.deadlines.readBy = t
	}
	x.d.Retime(writing)
}

func (x *wire) readBy() time.Time {
	if x.deadlines == nil {
		return time.Time{}
	}
	return x.deadlines.readBy
}

func (x *wire) writeBy() time.Time {
	if x.deadlines == nil {
		return time.Time{}
	}
	return x.deadlines.writeBy
}

// timeLeft returns how long an operation may block: the time to the deadline of the handler, or granted if there is no deadline.
func timeLeft(deadline time.Time, granted time.Duration) time.Duration {
	if deadline.IsZero() {
		return granted
	}
	// The wait needs a positive time, also after the deadline.
	return max(time.Until(deadline), time.Nanosecond)
}

// passed reports whether a deadline is set and has passed.
func passed(deadline time.Time) bool { return !deadline.IsZero() && time.Until(deadline) <= 0 }

// withDeadline calls write with the time to wait for a client that accepts no data: the time to the handler's deadline, or 0 without
// a deadline, when MinWriteRate applies. It calls write again when the handler changes the deadline.
func (x *wire) withDeadline(write func(patience time.Duration) error) error {
	for {
		if passed(x.writeBy()) {
			return os.ErrDeadlineExceeded
		}
		if err := write(timeLeft(x.writeBy(), 0)); err != engine.ErrRetimed {
			return err
		}
	}
}

// flushWithDeadline is flush within the handler's deadline.
func (x *wire) flushWithDeadline() error { return x.withDeadline(x.flush) }
