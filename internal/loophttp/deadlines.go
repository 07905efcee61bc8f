//go:build linux

package loophttp

import (
	"os"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// deadlines are the deadlines that a standard handler has set; zero for none. As on a net.Conn they apply at once, also to a
// Read or a Write that waits on another goroutine. wire.mu guards them.
type deadlines struct{ readBy, writeBy request.Deadline }

func (x *wire) setDeadline(writing bool, t time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.deadlines == nil {
		x.deadlines = new(deadlines)
	}
	if writing {
		x.deadlines.writeBy.Time = t
	} else {
		x.deadlines.readBy.Time = t
	}
	x.d.Retime(writing)
}

func (x *wire) readBy() request.Deadline {
	if x.deadlines == nil {
		return request.Deadline{}
	}
	return x.deadlines.readBy
}

func (x *wire) writeBy() request.Deadline {
	if x.deadlines == nil {
		return request.Deadline{}
	}
	return x.deadlines.writeBy
}

// withDeadline calls write with the time to wait for a client that accepts no data: the time to the handler's deadline, or 0 without
// a deadline, when MinWriteRate applies. It calls write again when the handler changes the deadline.
func (x *wire) withDeadline(write func(patience time.Duration) error) error {
	for {
		if x.writeBy().Passed() {
			return os.ErrDeadlineExceeded
		}
		if err := write(x.writeBy().Left(0)); err != engine.ErrRetimed {
			return err
		}
	}
}

// flushWithDeadline is flush within the handler's deadline.
func (x *wire) flushWithDeadline() error { return x.withDeadline(x.flush) }
