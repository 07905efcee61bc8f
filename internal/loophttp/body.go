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
	"github.com/dunlinhttp/dunlin/internal/request"
)

// A requestBody is the body of a request.
type requestBody struct {
	body     bodySource
	stream   *bodyStream    // the body, if the action reads it from the connection; allocated on demand
	whole    request.Whole  // the body, if it has arrived completely
	chunked  *http1.Chunked // decoded whole; nil if it was not chunked
	gathered *unfinished    // the memory of head and body, if they arrived in pieces and no response owns it
}

// A bodySource is where the action of a request reads its body.
type bodySource uint8

const (
	received     bodySource = iota // requestBody.whole
	arriving                       // requestBody.stream
	startedEarly                   // requestBody.stream, of a small body whose gathering ended early
)

// A bodyStream reads a request body from its connection, for an action that began before the body was complete. A Read may block and
// therefore gives up the loop. It never reads bytes after the end of the body, which belong to the next request.
type bodyStream struct {
	x       *wire
	early   []byte // decoded before the stream began; read first
	rest    []byte // received with the head, not yet decoded
	taken   int    // bytes of the input used by the body
	left    int64  // missing bytes after early, if not chunked
	read    int64  // bytes returned
	most    int64  // maximum number of bytes to return
	chunked bool
	asked   bool // 100 Continue has been sent or is unnecessary
	decoder http1.Chunked
	pace    exchange.BodyPace
	raw     []byte // encoded bytes read from the connection, see chunks.go
	looked  bool   // the client has closed its sending side, and the received bytes may contain the end of the body
	noWait  bool   // return errNotHere instead of waiting
	busy    bool   // a Read is under way
	lapsed  bool   // the last Read exceeded the deadline of the handler
	missed  error  // the error of an exceeded deadline within a chunked body; permanent, as in net/http
	stopped bool   // Reads must fail
	err     error
}

// needStream allocates the bodyStream if necessary.
func (x *wire) needStream() {
	if x.stream == nil {
		x.stream = new(bodyStream)
	}
}

// begin prepares for the body that follows x.head. rest is the input after the head, which may extend beyond the body.
func (b *bodyStream) begin(x *wire, rest []byte) {
	*b = bodyStream{x: x, rest: rest, most: x.handler.server.MaxBodyOf(x.State.Route), raw: b.raw[:0], chunked: x.head.Chunked}
	b.asked = !x.head.Expect100 || len(rest) > 0
	if b.chunked {
		b.decoder.Reset(&x.handler.limits, -1)
	} else {
		b.left = x.head.ContentLength
	}
}

// beginGathered continues with a body whose first part is in u.
func (b *bodyStream) beginGathered(x *wire, u *unfinished, rest []byte) {
	b.begin(x, rest)
	b.early, b.asked, b.pace = u.body, true, u.pace
	if b.chunked {
		b.decoder = u.chunked
	} else {
		b.left -= int64(len(u.body))
	}
}

// Read reads the body, up to the limit MaxBody.
func (b *bodyStream) Read(p []byte) (int, error) {
	x := b.x
	x.readMu.Lock()
	defer x.readMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if b.stopped {
		return 0, http.ErrBodyReadAfterClose
	}
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
	switch { // after a deadline, the handler may set a later one and read on
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

// receive reads from the connection. It sends 100 Continue first if the client waits for it.
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
		x.d.Expire() // an action must not answer with its own interpretation of ErrLate
	}
	return n, err
}

// receiveClaimed is receive for a claimed connection. It ends the claim.
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

// moveInput releases the read buffer while the body is awaited. Only the goroutine of the action may do this.
func (b *bodyStream) moveInput() {
	if !b.x.StdReads() {
		b.x.moveInput()
	}
}

// cut returns the problem for a body that the connection did not deliver completely.
func (b *bodyStream) cut(err error) error {
	server := b.x.handler.server
	if errors.Is(err, engine.ErrNoRoom) {
		return server.Pipeline.NoMemory("the request body", b.x.Conn.Met())
	}
	return server.BodyCut(err)
}

// await reads from the connection as long as the client sends fast enough. If a deadline of a standard handler or the timeout
// of the action expires first, it returns an error, for the timeout ErrLate.
func (b *bodyStream) await(p []byte) (int, error) {
	x, server := b.x, b.x.handler.server
	x.d.Detach() // the time of waiting counts from here
	for {
		if x.readBy().Passed() {
			b.lapsed = true
			return 0, server.BodyCut(os.ErrDeadlineExceeded)
		}
		left := b.pace.Left(&server.Settings)
		timeout := x.d.TimeLeft(x.readBy().Left(left))
		n, err := x.Conn.Read(p, timeout)
		waited := x.d.WaitedToRead()
		switch {
		case x.readBy().IsZero() && b.pace.TooSlow(&server.Settings, waited, int64(n)):
			return 0, server.CutBody(x.Conn.RemoteAddr())
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

// lost reports whether the client is lost, or has closed its sending side before the end of the body. left is the number of
// bytes that were not returned yet, -1 if unknown. The action reads the body and is waiting.
func (b *bodyStream) lost(left int64) bool {
	c := b.x.Conn
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
				return true // the reader of the body gets the error
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
	b.looked = here && finished // the received bytes are kept, and no more will arrive
	return !here
}

// errRefused is the reason not to read a body whose announced length exceeds the limit.
var errRefused = errors.New("the request body was refused")

// ask sends 100 Continue, unless an answer has begun.
func (b *bodyStream) ask(timeout time.Duration) error {
	x := b.x
	b.asked = true
	x.mu.Unlock() // writeMu precedes mu in the lock order
	x.beginWrite()
	defer x.writeMu.Unlock()
	switch {
	case b.stopped:
		return net.ErrClosed
	case x.sending != unbegun:
		return nil
	}
	if err := x.flush(timeout); err != nil {
		return err
	}
	_, err := x.Conn.Write([]byte(http1.Continue), timeout)
	return err
}

// stop makes Reads fail, also one under way.
func (b *bodyStream) stop() {
	x := b.x
	x.mu.Lock()
	defer x.mu.Unlock()
	b.stopped = true
	if b.busy {
		x.d.StopReading()
	}
}

// malformed returns the problem for a body that package http1 refuses.
func (b *bodyStream) malformed(err error) error {
	status := http.StatusBadRequest
	if e, ok := errors.AsType[http1.Error](err); ok {
		status = e.Status()
	}
	return b.x.handler.server.Pipeline.Problem(status, err.Error(), err)
}

// errNotHere reports that the next bytes of the body have not arrived.
var errNotHere = errors.New("more of the body must come")

// tooMuchLeft reports whether the connection must close if the action reads no further. It must if the body is broken, if the rest
// is or may be too large, or if the body was not read completely and the client had sent Expect: 100-continue. After a final answer
// such a client may send the rest or omit it (RFC 9110, section 10.1.1).
func (b *bodyStream) tooMuchLeft() bool {
	if b.chunked && b.err == nil {
		b.lookAhead()
	}
	kept := b.x.sending != unbegun && b.x.duplex // as promised in the head of the answer
	switch {
	case b.err != nil:
		return b.err != io.EOF
	case b.x.head.Expect100:
		return b.chunked || b.left > 0
	case b.chunked:
		return !kept // the rest has no known length, so the head announces the closing
	case b.lapsed && !kept:
		return b.left > 0 // the handler has stopped waiting for the rest
	}
	return b.left-int64(len(b.rest)) > exchange.MaxDiscard
}

// lookAhead detects the end of a chunked body after all data was read.
func (b *bodyStream) lookAhead() {
	if len(b.early) > 0 || b.busy {
		return
	}
	var one [1]byte
	b.noWait = true
	n, err := b.nextChunked(one[:])
	b.noWait = false
	if n > 0 {
		b.early = append([]byte(nil), one[0]) // still unread
	} else if err != errNotHere {
		b.err = err
	}
}

// skipHere discards the received part of the rest of the body.
func (b *bodyStream) skipHere() {
	if b.x.head.Expect100 {
		return
	}
	b.noWait = true
	_ = b.skip() // the error is kept in b.err
	b.noWait = false
	if b.err == errNotHere {
		b.err = nil
	}
}

// finish discards the unread rest of the body, so that the next request is parsed from its own beginning. The answer is sent
// first, because the client may be waiting for it. The result is false if the rest is too large or the body is broken: the
// connection must close then.
func (b *bodyStream) finish() bool {
	if b.err == io.EOF {
		return true
	}
	x := b.x
	x.beginWrite()
	defer x.endWrite()
	if x.deadlines != nil {
		x.deadlines.readBy = request.Deadline{} // the answer may have promised to keep the connection
	}
	return x.flush(0) == nil && b.skip() == io.EOF
}

// skip discards the rest of the body. It returns io.EOF at the end of the body, and nil if the rest is too large.
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
