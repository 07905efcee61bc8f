//go:build linux

package loophttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// A small body that has not arrived completely with its head is gathered on the loop, where waiting needs no goroutine. This is an
// optimisation. After a short time the action begins with the incomplete body and reads the rest itself, as it reads a large body.
// So an action can answer before the body has arrived, for example with 401, can answer each part of the body as it arrives, and
// gets an error if the body arrives too slowly. An action that has
// used complete bodies so far (Bytes, Decode, Form) gains nothing from an early start, so its bodies are gathered for longer.
//
// The number of actions that wait for the rest of a small body is limited to a part of MaxConcurrent. Beyond this limit, a body is
// gathered as long as its client sends fast enough. It occupies memory but no worker, so slow clients cannot occupy all workers.
const (
	// gatherTime is the time for which a small body is gathered. It equals the time for which the engine waits, after
	// Driver.Recall, for the rest of an incomplete message.
	gatherTime = engine.RecallAfter

	// wholeTime is the time for which a small body is gathered for an action that uses complete bodies.
	wholeTime = 250 * time.Millisecond

	// earlyShare limits the actions that begin before a small body is complete to 1/earlyShare of MaxConcurrent.
	earlyShare = 4
)

// gather begins to gather the body that follows the head in u.
func (x *wire) gather(u *unfinished) {
	u.pace = exchange.BodyPace{}
	u.since = x.d.Now()
	u.judged = u.since
	x.Conn.Proto = u
	x.Conn.SetDeadline(x.handler.server.BodyTimeout)
}

// serveGathered adds input to a small body that arrives in pieces. It begins the answer when the body is complete or becomes larger
// than smallBody. It also begins the answer after gatherTime or wholeTime, if beginEarly permits that.
func (x *wire) serveGathered(u *unfinished, in []byte) (n int, next progress) {
	n, done, err := u.addInput(in)
	if err != nil {
		x.knowHead(u)
		x.Conn.Proto = nil
		defer u.release()
		return len(in), x.refuseError(err)
	}
	u.pace.Came(int64(n))
	waits := !done && len(u.body) <= smallBody // for the rest of the body
	if waits {
		x.Conn.Progress(int64(n), u.left())
	}
	if waits && x.d.Now()-u.since < int64(gatherTime) {
		return n, needInput
	}
	u.head.CopyTo(&x.head, u.raw)
	x.whole, x.body, x.after, x.inPlace = request.Whole{Bytes: u.body}, received, in[n:], false
	if !done {
		x.body = arriving
	}
	x.find()
	if x.overdue() {
		x.closing = x.closing || !done
		x.Conn.Proto = nil
		defer u.release()
		return n, x.shed()
	}
	if waits && x.waitsOn(u) {
		return n, needInput
	}
	if x.TooSlowForLoop(x.d) {
		return n, needWorker // u stays with the connection until the worker continues
	}
	if waits && !x.beginEarly() {
		return n, needInput
	}
	x.chunked, x.gathered = &u.chunked, u
	x.Conn.Proto = nil
	if x.body != received {
		x.needStream()
		x.stream.beginGathered(x, u, in[n:])
	}
	next = x.answer()
	if x.body != received {
		n += x.stream.taken
	}
	if x.gathered != nil {
		x.gathered = nil
		u.release()
	}
	return n, next
}

// addInput adds the first n bytes of in, which belong to the body, and reports whether the body is complete. addInput stops
// when a chunked body has become larger than smallBody.
func (u *unfinished) addInput(in []byte) (n int, done bool, err error) {
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

// waitsOn reports whether the rest of a small body is gathered for longer, because the actions of its route use complete
// bodies.
func (x *wire) waitsOn(u *unfinished) bool {
	if !x.State.Route.WantsWhole.Load() {
		return false
	}
	left := wholeTime - time.Duration(x.d.Now()-u.since)
	if left <= 0 {
		return false
	}
	x.Conn.SetDeadline(min(left, u.pace.Left(&x.handler.server.Settings)))
	return true
}

// beginEarly counts the action among the actions that wait for the rest of a small body, until endEarly. It returns false if their
// number is at its limit.
func (x *wire) beginEarly() bool {
	h := x.handler
	if h.early.Add(1) > h.maxEarly {
		h.early.Add(-1)
		x.Conn.SetDeadline(x.handler.server.BodyTimeout) // the rate is checked then, and beginEarly is tried again
		return false
	}
	x.body = startedEarly
	return true
}

func (x *wire) endEarly() {
	if x.body == startedEarly {
		x.body = arriving
		x.handler.early.Add(-1)
	}
}

// learnBody records whether the action used the complete body.
func (x *wire) learnBody() {
	s := x.State
	if !s.Viewed && !s.Loaded && !x.StdReads() {
		return
	}
	if whole := s.Loaded && !x.StdReads(); s.Route.WantsWhole.Load() != whole {
		s.Route.WantsWhole.Store(whole)
	}
}

// waitedLong checks the rate of a gathered body at its deadline. If the client was fast enough, serveGathered is called again, and
// may begin the action.
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
