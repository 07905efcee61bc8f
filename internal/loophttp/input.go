//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// use prepares x for a call with driver d and connection c. It always sets d's lock, because d may have served another wire since
// the last call: a call that moves to the background takes its wire with it.
func (x *wire) use(d *engine.Driver, c *engine.Conn) {
	x.d, x.c = d, c
	d.Share(&x.mu)
}

// smallAfter limits, in bytes, the pipelined input that is copied to release the read buffer before a streamed response, which may
// take long to produce its first byte. A larger input keeps the buffer.
const smallAfter = 4 << 10

// moveInput releases the read buffer of a request that will take long: its answer streams, or its body is awaited. It copies
// the needed bytes: the head, a complete body, the following input. It runs on the goroutine of the action. If an action has a
// view of a body in the buffer, the action keeps the buffer.
func (x *wire) moveInput() {
	if x.moved || x.inPlace && len(x.whole.Bytes) > 0 && x.s.Viewed {
		return
	}
	x.moved = true
	if x.inPlace {
		x.keepRequest()
	}
	if x.body != received {
		x.stream.rest = x.d.MoveInput(x.given - len(x.stream.rest))
	} else {
		x.after = x.d.MoveInput(x.given - len(x.after))
	}
}

// keepRequest copies head and body to memory of the exchange.
func (x *wire) keepRequest() {
	h, s := &x.head, x.s
	head := len(h.Bytes())
	viewed := view.Within(s.Path, h.Bytes()) // otherwise the path is a copy already
	x.kept = append(x.kept[:0], h.Bytes()...)
	x.kept = append(x.kept, x.whole.Bytes...)
	h.Rebase(x.kept[:head])
	if viewed {
		s.Path = view.String(h.Path())
	}
	s.Query = view.String(h.Query())
	if len(x.whole.Bytes) == 0 {
		return
	}
	body := x.kept[head:]
	x.whole.Move(body)
	if s.Loaded {
		s.Whole = body
	}
	if x.stdBody != nil {
		x.stdBody.whole.Rest = body[len(body)-len(x.stdBody.whole.Rest):]
	}
}

// flush sends the output. The caller holds writeMu and mu.
func (x *wire) flush(timeout time.Duration) error {
	x.begunAt = -1
	err := x.d.Flush(timeout)
	if x.begun {
		x.c.ReleaseReservation()
	}
	return err
}

// beginWrite acquires the locks for writing a part of the answer.
func (x *wire) beginWrite() {
	x.writeMu.Lock()
	x.mu.Lock()
}

func (x *wire) endWrite() {
	x.mu.Unlock()
	x.writeMu.Unlock()
}
