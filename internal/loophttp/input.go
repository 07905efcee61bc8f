//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// An input is the input of a call of the handler, and the part of it that belongs to the current request.
type input struct {
	given   int32  // bytes passed to the call
	moved   bool   // the driver's buffer was released, see moveInput
	inPlace bool   // head and whole of the request are stored in the buffer
	wary    uint8  // remaining visits of the driver in which the clock is read after each request, see request.BeginVisit
	kept    []byte // the copy of head and whole that moveInput has made
	after   []byte // the input after the request
}

// use prepares x for a call with driver d and connection c. It always sets d's lock, because d may have served another wire since
// the last call: a call that moves to the background takes its wire with it.
func (x *wire) use(d *engine.Driver, c *engine.Conn) {
	x.d, x.Conn = d, c
	d.Share(&x.mu)
}

// smallAfter limits, in bytes, the pipelined input that is copied to release the read buffer before a streamed response, which may
// take long to produce its first byte. A larger input keeps the buffer.
const smallAfter = 4 << 10

// moveInput releases the read buffer of a request that will take long: its answer streams, or its body is awaited. It copies
// the needed bytes: the head, a complete body, the following input. It runs on the goroutine of the action. If an action has a
// view of a body in the buffer, the action keeps the buffer.
func (x *wire) moveInput() {
	if x.moved || x.inPlace && len(x.whole.Bytes) > 0 && x.State.Viewed {
		return
	}
	x.moved = true
	if x.inPlace {
		x.keepRequest()
	}
	if x.body != received {
		x.stream.rest = x.d.MoveInput(int(x.given) - len(x.stream.rest))
	} else {
		x.after = x.d.MoveInput(int(x.given) - len(x.after))
	}
}

// keepRequest copies head and body to memory of the exchange.
func (x *wire) keepRequest() {
	h, s := &x.head, x.State
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
	x.MoveBody(&x.whole, body)
	if s.Loaded {
		s.Whole = body
	}
}

// flush sends the output. The caller holds writeMu and mu.
func (x *wire) flush(timeout time.Duration) error {
	if x.sending == unbegun {
		return x.d.Flush(timeout)
	}
	x.sending.on(flush)
	err := x.d.Flush(timeout)
	x.Conn.ReleaseReservation()
	return err
}
