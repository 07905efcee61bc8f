//go:build linux

package loophttp

import (
	"os"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// deadlines are those that a standard handler has set; zero for none. As on a net.Conn
// they hold at once, also for a Read or a Write that waits on another goroutine. They
// are guarded by exchange.using.
type deadlines struct{ readBy, writeBy time.Time }

func (x *wire) setDeadline(writing bool, t time.Time) {
	x.using.Lock()
	defer x.using.Unlock()
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

// timeLeft returns how long an operation may block: until the deadline that a
// handler has set, else for the time that the config grants.
func timeLeft(deadline time.Time, granted time.Duration) time.Duration {
	if deadline.IsZero() {
		return granted
	}
	// A deadline that has passed still needs a positive time to wait.
	return max(time.Until(deadline), time.Nanosecond)
}

// passed reports whether a deadline that a handler has set has passed.
func passed(deadline time.Time) bool { return !deadline.IsZero() && time.Until(deadline) <= 0 }

// inTime calls write with how long it may let the client take nothing: until the
// handler's deadline, or 0 for as long as the client takes MinWriteRate.
func (x *wire) inTime(write func(patience time.Duration) error) error {
	for {
		if passed(x.writeBy()) {
			return os.ErrDeadlineExceeded
		}
		if err := write(timeLeft(x.writeBy(), 0)); err != engine.ErrRetimed {
			return err
		}
	}
}

// flushInTime is flush within the handler's deadline.
func (x *wire) flushInTime() error { return x.inTime(x.flush) }
