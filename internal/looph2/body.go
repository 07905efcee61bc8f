//go:build linux

package looph2

import (
	"io"
	"net/http"
	"os"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// arrive passes a received piece of a body to the Read that waits for it, or adds the piece to the unread bytes.
func (s *session) arrive(own *stream, ev *http2.Event) {
	own.came += int64(len(ev.Data))
	s.mu.Lock()
	b := &own.flows().in
	dropped := own.action >= late || own.intake == refused || own.noRoom || b.stopped
	taken := len(ev.Data)
	if !dropped {
		taken = 0
		if b.unread.len == 0 {
			taken = copy(b.into, ev.Data)
			b.into, b.got = b.into[taken:], b.got+taken
		}
		b.unread.add(ev.Data[taken:])
		s.yields = s.yields || b.unread.len >= yieldFrom
		own.holdInput()
		own.progress(int64(len(ev.Data)), -1)
		if ev.Trailers != nil {
			own.keepTrailers(ev.Trailers)
			own.holdInput()
		}
	}
	b.asked = true
	b.ended = b.ended || ev.End
	own.hasMoved()
	unclaimed := b.unclaimed
	if !dropped && b.begun < smallBody { // the action may have to wait for room before it reads on: see readBody
		b.begun += len(ev.Data)
		b.consumed, taken = b.consumed+taken, 0
	} else if own.req.ContentLength > 0 {
		own.st.Roomy = true
	}
	s.mu.Unlock()
	if taken > 0 {
		s.h2.Consumed(own.st, taken)
	}
	if unclaimed {
		s.h2.Unclaimed(own.st)
	}
}

// discard discards the unread bytes of a streamed body, and those that are still to arrive. s.mu is held.
func (own *stream) discard() {
	b := &own.in
	if own.intake != streamed || own.action == freed || b.stopped {
		return
	}
	b.stopped = true
	b.consumed += b.unread.len - b.credited
	own.dropUnread()
	own.holdInput()
	own.hasMoved()
	own.s.notify(own)
}

// setUnclaimed records whether the action waits for room for the body.
func (x *Wire) setUnclaimed(unclaimed bool) {
	own := x.own
	if own.intake != streamed {
		return
	}
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if own.in.unclaimed = unclaimed; unclaimed {
		own.s.notify(own)
	}
}

// yieldFrom is a number of bytes. When a body has at least as many unread, the loop yields to the goroutines that read bodies.
const yieldFrom = 8 * pieceSize

// A bodyReader reads a body while it arrives.
type bodyReader struct {
	x     *Wire
	own   *stream
	limit int64
	read  int64
	err   error
}

// Bound limits the bytes that are read, see [exchange.Gathered].
func (r *bodyReader) Bound(limit int64) { r.limit = min(r.limit, limit) }

// Discard discards the rest of the body while it arrives.
func (r *bodyReader) Discard() {
	r.own.s.mu.Lock()
	defer r.own.s.mu.Unlock()
	r.own.discard()
}

func (r *bodyReader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.x.readBody(r.own, p)
	if r.read += int64(n); r.read > r.limit {
		n, err = 0, r.x.h.server.BodyTooLarge(r.limit)
	}
	r.err = err
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// readBody reads received bytes, and waits if there are none.
func (x *Wire) readBody(own *stream, p []byte) (int, error) {
	s, server := own.s, own.s.h.server
	b := &own.in
	s.mu.Lock()
	if b.consumed > 0 && b.consumed >= b.unread.len { // not earlier: an action that waits for room needs no more bytes
		s.notify(own)
	}
	if b.unread.len == 0 && !b.ended && own.unreadable() == nil {
		x.awaitBody(own, p)
	}
	defer s.mu.Unlock()
	if n := b.got; n > 0 {
		b.got = 0
		if own.action.isLate() {
			return 0, exchange.ErrLate
		}
		return n, nil
	}
	if err := own.unreadable(); err != nil && (b.unread.len == 0 || own.action.isLate()) {
		return 0, err
	}
	switch {
	case b.unread.len > 0:
	case b.ended:
		return 0, io.EOF
	default:
		return 0, server.BodyCut(io.ErrUnexpectedEOF)
	}
	size := b.unread.size
	n := b.unread.read(p)
	b.transferred = max(b.transferred-(size-b.unread.size), 0) // the transferred bytes are the first ones
	credited := min(n, b.credited)
	b.credited -= credited
	b.consumed += n - credited
	own.holdInput()
	return n, nil
}

// awaitBody waits until there are bytes to read, or none can arrive any more. Bytes that arrive meanwhile are copied to p and
// counted in got. s.mu is held, except while awaitBody yields the action's permit. The action has no loop to lose, since its body
// is streamed. The reader may be on another goroutine than the action. Then the action may return meanwhile, and the wire may serve
// another request.
func (x *Wire) awaitBody(own *stream, p []byte) {
	s := own.s
	b := &own.in
	d := x.d
	s.mu.Unlock()
	yielded := d != nil
	if yielded {
		d.YieldPermit()
	}
	s.mu.Lock()
	if !b.asked && !own.answer.started() && !own.action.isLate() {
		b.asked = true
		own.flows().heads = append(own.heads, head{status: http.StatusContinue, length: -1})
		s.notify(own)
	}
	own.setWorking(false)
	if b.unread.len == 0 {
		b.into = p
	}
	for b.got == 0 && b.unread.len == 0 && !b.ended && own.unreadable() == nil {
		if !b.waits {
			b.waits, b.since = true, x.now()
			own.holdInput()
		}
		own.moved.Wait()
	}
	b.into = nil
	if own.action >= lateReturned {
		b.waits = false
		own.holdInput()
		return
	}
	if b.waits {
		b.waits = false
		b.waited += x.now() - b.since
	}
	own.holdInput()
	own.setWorking(true)
	if yielded {
		s.mu.Unlock()
		d.RegainPermit()
		s.mu.Lock()
	}
}

// unreadable returns the reason why the body cannot be read further. s.mu is held.
func (own *stream) unreadable() error {
	server := own.s.h.server
	switch {
	case own.action.isLate():
		return exchange.ErrLate
	case own.in.stopped:
		return http.ErrBodyReadAfterClose
	case own.noRoom:
		return own.noMemory()
	case own.cut != nil:
		return own.cut
	case own.reading.Passed():
		return server.BodyCut(os.ErrDeadlineExceeded)
	case own.answer.canceled() || own.action >= returned:
		return server.BodyCut(io.ErrUnexpectedEOF)
	}
	return nil
}
