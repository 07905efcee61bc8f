//go:build linux

package loophttp

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A bodyStream reads a request body from its connection, for an action that
// started before the body was here. Reading blocks and so gives up the loop.
// It never takes a byte beyond the body's end, which belongs to the next
// request.
type bodyStream struct {
	x       *wire
	early   []byte // decoded before the stream began, to be read first
	rest    []byte // arrived with the head and not looked at yet
	taken   int    // how many bytes of the input the body has used
	left    int64  // bytes of the body to come after early, when not chunked
	read    int64  // bytes handed out
	most    int64  // most bytes to hand out
	chunked bool
	asked   bool // 100 Continue has been sent, or need not be
	decoder http1.Chunked
	pace    exchange.BodyPace
	raw     []byte // encoded bytes read from the connection, see chunks.go
	looked  bool   // the client has finished sending, and what it has sent is not known to be too little
	noWait  bool   // what has not arrived yet is errNotHere
	busy    bool   // a Read is under way
	lapsed  bool   // it has come to a handler's deadline
	missed  error  // within chunks: the error of that stays, as of net/http's reader of chunks
	stopped bool   // it is to fail
	err     error
}

// needStream makes sure that there is a bodyStream.
func (x *wire) needStream() {
	if x.stream == nil {
		x.stream = new(bodyStream)
	}
}

// begin prepares for the body that follows x.head, of which rest has arrived;
// rest may hold what comes after the body too.
func (b *bodyStream) begin(x *wire, rest []byte) {
	*b = bodyStream{x: x, rest: rest, most: x.handler.server.MaxBodyOf(x.s.Route), raw: b.raw[:0], chunked: x.head.Chunked}
	b.asked = !x.head.Expect100 || len(rest) > 0
	if b.chunked {
		b.decoder.Reset(&x.handler.limits, -1)
	} else {
		b.left = x.head.ContentLength
	}
}

// beginGathered goes on with a body of which u has gathered a part.
func (b *bodyStream) beginGathered(x *wire, u *unfinished, rest []byte) {
	b.begin(x, rest)
	b.early, b.asked, b.pace = u.body, true, u.pace
	if b.chunked {
		b.decoder = u.chunked
	} else {
		b.left -= int64(len(u.body))
	}
}

// Read reads the body, up to MaxBody.
func (b *bodyStream) Read(p []byte) (int, error) {
	x := b.x
	x.reading.Lock()
	defer x.reading.Unlock()
	x.using.Lock()
	defer x.using.Unlock()
	return b.readLocked(p)
}

// readLocked is Read for callers that hold reading and using.
func (b *bodyStream) readLocked(p []byte) (int, error) {
	if b.missed != nil {
		return 0, b.missed
	}
	b.busy, b.lapsed = true, false
	defer func() { b.busy = false }()
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.next(p)
	if b.read += int64(n); b.read > b.most {
		n, err = 0, b.x.handler.server.BodyTooLarge(b.most)
	}
	switch { // the handler may put its deadline off, and read on
	case !b.lapsed:
		b.err = err
	case b.chunked:
		b.missed = err
	}
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// next is Read without the limit. It returns 0 bytes only with an error.
func (b *bodyStream) next(p []byte) (int, error) {
	if len(b.early) > 0 {
		n := copy(p, b.early)
		if b.early = b.early[n:]; len(b.early) == 0 {
			b.x.letGathered()
		}
		return n, nil
	}
	if b.chunked {
		return b.nextChunked(p)
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	if len(b.rest) > 0 {
		n := copy(p, b.rest)
		b.rest = b.rest[n:]
		b.taken += n
		b.left -= int64(n)
		return n, nil
	}
	n, err := b.receive(p)
	b.left -= int64(n)
	return n, err
}

// receive reads from the connection, after asking a client that waits to be
// asked.
func (b *bodyStream) receive(p []byte) (int, error) {
	x := b.x
	if b.noWait {
		return 0, errNotHere
	}
	if !x.claim() {
		return 0, exchange.ErrLate
	}
	n, err := b.receiveClaimed(p)
	if err == exchange.ErrLate {
		x.d.Expire() // or what the action makes of the error could be the answer
	}
	return n, err
}

// receiveClaimed is receive with the connection claimed, which it gives back.
func (b *bodyStream) receiveClaimed(p []byte) (int, error) {
	x := b.x
	defer x.unclaim()
	if !b.asked {
		if err := b.ask(x.d.TimeLeft(x.handler.server.WriteTimeout)); err != nil {
			return 0, x.handler.server.BodyCut(err)
		}
	}
	b.moveInput()
	return b.await(p)
}

// moveInput frees the buffer of the request, as the body is awaited; not for another goroutine than the action's.
func (b *bodyStream) moveInput() {
	if b.x.stdBody == nil {
		b.x.moveInput()
	}
}

// cut is the problem of a body of which the connection gives no more.
func (b *bodyStream) cut(err error) error {
	server := b.x.handler.server
	if errors.Is(err, engine.ErrNoRoom) {
		return server.Pipeline.NoMemory("the request body", b.x.c.Met())
	}
	return server.BodyCut(err)
}

// await reads from the connection, for as long as the client sends fast enough. A
// deadline of a standard handler, or a limit on the action's time, comes first: that is
// ErrLate.
func (b *bodyStream) await(p []byte) (int, error) {
	x, server := b.x, b.x.handler.server
	x.d.Detach() // from here on the clock runs
	for {
		if passed(x.readBy()) {
			b.lapsed = true
			return 0, server.BodyCut(os.ErrDeadlineExceeded)
		}
		left := b.pace.Left(&server.Settings)
		timeout := x.d.TimeLeft(timeLeft(x.readBy(), left))
		n, err := x.c.Read(p, timeout)
		waited := x.d.WaitedToRead()
		switch {
		case x.readBy().IsZero() && b.pace.TooSlow(&server.Settings, waited, int64(n)):
			return 0, server.CutBody(x.c.RemoteAddr())
		case err == nil:
			return n, nil
		case err == engine.ErrRetimed:
			// A handler has set another deadline meanwhile.
		case errors.Is(err, os.ErrDeadlineExceeded) && x.d.TimedOut():
			return 0, exchange.ErrLate
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return n, b.cut(err)
		}
	}
}

// lost reports whether the client has gone, or has finished sending before the end of the body, of which so many bytes
// were not handed out (-1: unknown). The action, which reads the body, waits.
func (b *bodyStream) lost(left int64) bool {
	c := b.x.c
	switch {
	case left >= 0:
		left -= int64(len(b.early) + len(b.rest))
		return c.Lost(max(left, 0))
	case c.Lost(-1):
		return true
	case !b.chunked || b.looked:
		return false
	}
	ends := b.decoder.Twin()
	enough := func(piece []byte) bool {
		for len(piece) > 0 && !ends.Done() {
			_, n, err := ends.Next(piece)
			if err != nil {
				return true // which is for who reads it
			}
			piece = piece[n:]
		}
		return ends.Done()
	}
	if enough(b.rest) || enough(b.raw) {
		return false
	}
	finished := false
	here := c.Ahead(func(piece []byte) bool {
		finished = true
		return enough(piece)
	})
	b.looked = here && finished // what is here stays, and no more comes
	return !here
}

// errRefused is why a body that is announced to be too long is not read.
var errRefused = errors.New("the request body was refused")

// ask tells a client that waits for it to send the body, unless an answer that has
// begun has told it.
func (b *bodyStream) ask(timeout time.Duration) error {
	x := b.x
	b.asked = true
	x.using.Unlock() // writing comes first
	x.beginWrite()
	defer x.writing.Unlock()
	switch {
	case b.stopped:
		return net.ErrClosed
	case x.begun:
		return nil
	}
	if err := x.flush(timeout); err != nil {
		return err
	}
	_, err := x.c.Write([]byte(http1.Continue), timeout)
	return err
}

// stop has a Read that is under way fail, and waits for it.
func (b *bodyStream) stop() {
	x := b.x
	x.using.Lock()
	if b.busy {
		b.stopped = true
		x.d.StopReading()
	}
	x.using.Unlock()
	x.reading.Lock()
	//lint:ignore SA2001 whoever had it has finished
	x.reading.Unlock()
}

// malformed is the problem of a body that the codec refuses.
func (b *bodyStream) malformed(err error) error {
	status := http.StatusBadRequest
	if e, ok := errors.AsType[http1.Error](err); ok {
		status = e.Status()
	}
	return b.x.handler.server.Pipeline.Problem(status, err.Error(), err)
}

// errNotHere says that more of the body must come.
var errNotHere = errors.New("more of the body must come")

// tooMuchLeft reports whether the connection must close if the action reads no
// further: the body is broken, too much of it is left or may be, or it was not read
// to its end and the client waits to be asked for it, or was: whether it will send the
// rest, now that it has an answer, is its own choice (RFC 9110, 10.1.1).
func (b *bodyStream) tooMuchLeft() bool {
	if b.chunked && b.err == nil {
		b.lookAhead()
	}
	kept := b.x.begun && b.x.duplex // as the client was told
	switch {
	case b.err != nil:
		return b.err != io.EOF
	case b.x.head.Expect100:
		return b.chunked || b.left > 0
	case b.chunked:
		return !kept // the client is told, since nobody knows how much is to come
	case b.lapsed && !kept:
		return b.left > 0 // which the handler has not waited for
	}
	return b.left-int64(len(b.rest)) > exchange.MaxDiscard
}

// lookAhead finds the end of a chunked body of which all data was read.
func (b *bodyStream) lookAhead() {
	if len(b.early) > 0 || b.busy {
		return
	}
	var one [1]byte
	b.noWait = true
	n, err := b.nextChunked(one[:])
	b.noWait = false
	if n > 0 {
		b.early = append([]byte(nil), one[0]) // it is still to be read
	} else if err != errNotHere {
		b.err = err
	}
}

// skipHere discards what has arrived of the rest of the body.
func (b *bodyStream) skipHere() {
	if b.x.head.Expect100 {
		return
	}
	b.noWait = true
	_ = b.skip() // it stays in b.err
	b.noWait = false
	if b.err == errNotHere {
		b.err = nil
	}
}

// finish discards what the action has not read, so that the next request is
// not taken from the middle of this body. The client, which may have a reason to wait,
// gets the answer first. It is false when too much is left, or the
// body is broken: the connection must close then.
func (b *bodyStream) finish() bool {
	if b.err == io.EOF {
		return true
	}
	x := b.x
	x.beginWrite()
	defer x.endWrite()
	if x.deadlines != nil {
		x.deadlines.readBy = time.Time{} // the answer may have promised to keep the connection
	}
	return x.flush(0) == nil && b.skip() == io.EOF
}

// skip discards the rest of the body. It returns io.EOF at its end, nil when
// there is too much of it.
func (b *bodyStream) skip() error {
	b.early = nil
	var sink [4 << 10]byte
	for drained := 0; drained <= exchange.MaxDiscard && b.err == nil; {
		var n int
		n, b.err = b.next(sink[:])
		drained += n
	}
	return b.err
}
