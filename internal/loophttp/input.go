//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// use makes a call of the engine the current one. The lock is d's anew each time, also
// when x was d's before: a call that goes on in the background trades exchanges, and with them locks.
func (x *wire) use(d *engine.Driver, c *engine.Conn) {
	x.d, x.c = d, c
	d.Share(&x.using)
}

// smallAfter is how many bytes of pipelined input may be moved before it is known
// that a producer lasts: it may wait for long before its first byte.
const smallAfter = 4 << 10

// moveInput frees the buffer that the request was read into, because the request
// is going to last: its answer streams, or its body is awaited. What is still needed is
// copied: the head, a body that is here, the input behind. It runs on the
// goroutine of the action. An action that has a view of a body which lies in that
// buffer keeps it.
func (x *wire) moveInput() {
	if x.moved || x.inPlace && len(x.whole) > 0 && x.s.Viewed {
		return
	}
	x.moved = true
	if x.inPlace {
		x.keepRequest()
	}
	if x.streaming {
		x.stream.rest = x.d.MoveInput(x.given - len(x.stream.rest))
	} else {
		x.after = x.d.MoveInput(x.given - len(x.after))
	}
}

// keepRequest copies head and body to memory of the exchange.
func (x *wire) keepRequest() {
	h, s := &x.head, x.s
	head := len(h.Bytes())
	viewed := view.Within(s.Path, h.Bytes()) // else it was made canonical, or clean
	x.kept = append(x.kept[:0], h.Bytes()...)
	x.kept = append(x.kept, x.whole...)
	h.Rebase(x.kept[:head])
	if viewed {
		s.Path = view.String(h.Path())
	}
	s.Query = view.String(h.Query())
	if len(x.whole) == 0 {
		return
	}
	x.whole = x.kept[head:]
	if s.Loaded {
		s.Whole = x.whole
	}
	if x.reader != nil {
		x.reader.Rest = x.whole[len(x.whole)-len(x.reader.Rest):]
	}
	if x.stdBody != nil {
		x.stdBody.whole.Rest = x.whole[len(x.whole)-len(x.stdBody.whole.Rest):]
	}
}

// flush sends the output. The caller holds writing and using.
func (x *wire) flush(timeout time.Duration) error {
	x.begunAt = -1
	err := x.d.Flush(timeout)
	if x.begun {
		x.c.EndAhead()
	}
	return err
}

// beginWrite locks what a part of the answer is written under.
func (x *wire) beginWrite() {
	x.writing.Lock()
	x.using.Lock()
}

func (x *wire) endWrite() {
	x.using.Unlock()
	x.writing.Unlock()
}
