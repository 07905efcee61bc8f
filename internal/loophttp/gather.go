//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A small body that has not come in whole with its head is gathered on the loop, where
// waiting costs no goroutine. That is an optimisation: what does not come at once is read
// by the action, which begins without it, as for a large body. So an action can answer
// before the body has come (401), answer to it piece by piece, and learn that it came too
// slowly. An action that has asked for whole bodies so far (Bytes, Decode, Form) has no
// use for half a one, and is let wait for longer.
//
// Actions that wait for a small body are bounded: beyond a part of MaxConcurrent
// bodies are gathered for as long as it takes, with memory alone, so that slow
// clients cannot keep workers from others.
const (
	// gatherTime is how long any small body is gathered. It is the engine's for
	// Driver.Recall, and that of a slow network only by chance.
	gatherTime = engine.RecallAfter

	// wholeTime is how long one is whose action takes it in whole.
	wholeTime = 250 * time.Millisecond

	// earlyShare is the part of MaxConcurrent, one in so many, for actions that have begun
	// without the whole of a small body.
	earlyShare = 4
)

// gather begins to gather the body behind the head in u.
func (x *wire) gather(u *unfinished) {
	u.pace = exchange.BodyPace{}
	u.since = x.d.Now()
	u.judged = u.since
	x.c.Proto = u
	x.c.SetDeadline(x.handler.server.BodyTimeout)
}

// serveGathered adds to a small body that comes in pieces, and answers when
// it is here.
func (x *wire) serveGathered(u *unfinished, in []byte) (n int, next progress) {
	n, done, err := u.take(in)
	if err != nil {
		x.knowHead(u)
		x.c.Proto = nil
		defer u.release()
		return len(in), x.refuseError(err)
	}
	u.pace.Came(int64(n))
	waits := !done && len(u.body) <= smallBody // for more
	if waits {
		x.c.Moved(int64(n), u.left())
	}
	if waits && x.d.Now()-u.since < int64(gatherTime) {
		return n, needInput
	}
	u.head.CopyTo(&x.head, u.raw)
	x.whole, x.reader, x.streaming, x.after, x.inPlace = u.body, nil, !done, in[n:], false
	x.find()
	if x.overdue() {
		x.closing = x.closing || !done
		x.c.Proto = nil
		defer u.release()
		return n, x.shed()
	}
	if waits && x.waitsOn(u) {
		return n, needInput
	}
	if x.tooSlowForLoop() {
		return n, needWorker // u stays with the connection and is found again
	}
	if waits && !x.beginEarly() {
		return n, needInput
	}
	if x.expectsMuch() {
		if next, done := x.awaitRoom(); done {
			x.endEarly()
			if next != needRoom {
				x.c.Proto = nil
				u.release()
			}
			return n, next
		}
	}
	x.chunked, x.gathered = &u.chunked, u
	x.c.Proto = nil
	if x.streaming {
		x.needStream()
		x.stream.beginGathered(x, u, in[n:])
	}
	next = x.answer()
	if x.streaming {
		n += x.stream.taken
	}
	if x.gathered != nil {
		x.gathered = nil
		u.release()
	}
	return n, next
}

// take adds what in has of the body, which is n bytes long, and reports whether that was the last of it. Of
// chunks it takes no more than a small body.
func (u *unfinished) take(in []byte) (n int, done bool, err error) {
	if !u.head.Chunked {
		n = min(len(in), int(u.head.ContentLength)-len(u.body))
		u.addBody(in[:n])
		return n, len(u.body) == int(u.head.ContentLength), nil
	}
	for n < len(in) && !u.chunked.Done() && len(u.body) <= smallBody {
		data, taken, err := u.chunked.Next(in[n:])
		if err != nil {
			return n, false, err
		}
		u.addBody(data)
		n += taken
	}
	return n, u.chunked.Done(), nil
}

// waitsOn reports whether the rest of a small body, which did not come at once, is
// gathered because of what the route is known for.
func (x *wire) waitsOn(u *unfinished) bool {
	if !x.s.Route.WantsWhole.Load() {
		return false
	}
	left := wholeTime - time.Duration(x.d.Now()-u.since)
	if left <= 0 {
		return false
	}
	x.c.SetDeadline(min(left, u.pace.Left(&x.handler.server.Settings)))
	return true
}

// beginEarly takes a place among the actions that wait for a small body; false if
// all are taken. endEarly gives it back.
func (x *wire) beginEarly() bool {
	h := x.handler
	if h.early.Add(1) > h.mostEarly {
		h.early.Add(-1)
		x.c.SetDeadline(x.handler.server.BodyTimeout) // it is judged then, and looked at again
		return false
	}
	x.early = true
	return true
}

func (x *wire) endEarly() {
	if x.early {
		x.early = false
		x.handler.early.Add(-1)
	}
}

// learnBody notes how the action has used the body.
func (x *wire) learnBody() {
	s := x.s
	if !s.Viewed && !s.Loaded && x.stdBody == nil {
		return
	}
	if whole := s.Loaded && x.stdBody == nil; s.Route.WantsWhole.Load() != whole {
		s.Route.WantsWhole.Store(whole)
	}
}

// waitedLong judges at the deadline of a body that is gathered whether it came too
// slowly; if not, the action may begin.
func (u *unfinished) waitedLong(d *engine.Driver, c *engine.Conn, settings *exchange.Settings) (tooSlow bool) {
	now := d.Now()
	tooSlow = u.pace.TooSlow(settings, time.Duration(now-u.judged), 0)
	u.judged = now
	if !tooSlow {
		c.CallAgain()
		c.SetDeadline(u.pace.Left(settings))
	}
	return tooSlow
}
