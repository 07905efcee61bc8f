package stdhttp

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// This file has the body of a net/http request, and the request for standard handlers.

func (x *wire) hasBody() bool { return x.Req.Body != nil && x.Req.Body != http.NoBody }

// Received returns false, because net/http reads a body only when it is needed.
func (x *wire) Received() ([]byte, bool) { return nil, false }

func (x *wire) Body(limit int64) io.Reader {
	if !x.hasBody() {
		return &exchange.Reader{}
	}
	if n := x.Req.ContentLength; x.direct && 0 < n && n <= limit {
		return problemBody{x.timed(), x.service.Server} // net/http returns at most the announced length
	}
	// If the body is not read to its end, MaxBytesReader also makes net/http close the connection.
	return problemBody{http.MaxBytesReader(x.w, x.timed(), limit), x.service.Server}
}

// RefuseBody closes an HTTP/1 connection after the answer. Otherwise net/http would read up to 256 KiB of the body
// before it answers. With HTTP/2, RefuseBody does nothing, because net/http ends the stream after the answer.
func (x *wire) RefuseBody() {
	if x.Req.ProtoMajor < 2 {
		x.CloseAfter()
	}
}

// remaining returns the body if a part of it may be unread and it is a TimedBody, and otherwise nil.
func (x *wire) remaining() *TimedBody {
	if !x.hasBody() {
		return nil
	}
	if x.inner {
		return nil // the wire of the outer request reads the rest
	}
	if b, ours := x.timed().(*TimedBody); ours && !b.Ended() {
		return b
	}
	return nil
}

// timed returns the request body. It has time limits if the connection belongs to a Server.
func (x *wire) timed() io.ReadCloser {
	if x.timedBody == nil {
		if x.timedBody = NewTimedBody(x.Req); x.timedBody == nil {
			return x.Req.Body
		}
	}
	return x.timedBody
}

// skipBody reads the rest of the body before the answer, because net/http would read it without a time limit. If the
// rest is too long, the connection closes, as on the loop engine. Most requests have no body. For these, skipBody is
// one comparison that is inlined.
func (x *wire) skipBody() {
	if x.Req.ContentLength != 0 {
		x.skipRest()
	}
}

func (x *wire) skipRest() {
	b := x.remaining()
	if b == nil || x.duplex || x.Req.Close || x.Req.Header.Get("Expect") != "" || x.w.Header().Get("Connection") == "close" {
		return // in these cases the answer is sent before the rest of the body is read
	}
	// If more than MaxDiscard bytes are left, the body is not read: as with net/http, the action may read it while
	// it answers.
	if x.Req.ContentLength-b.received.Load() > exchange.MaxDiscard || !b.skip(exchange.MaxDiscard) {
		x.CloseAfter()
	}
}

// stopBody limits the time in which net/http reads the rest of the body after the request, even if the connection
// then closes.
func (x *wire) stopBody() {
	if x.Req.ContentLength != 0 {
		x.stopRest()
	}
}

func (x *wire) stopRest() {
	if b := x.remaining(); b != nil {
		b.StopUnread()
	}
}

// problemBody converts the errors of net/http to problems that name the client as the cause.
type problemBody struct {
	src    io.Reader
	server *exchange.Server
}

func (b problemBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	if err != nil && err != io.EOF && err != http.ErrBodyReadAfterClose {
		err = b.problem(err)
	}
	return n, err
}

// problem returns the problem for a body that net/http could not read.
func (b problemBody) problem(err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return b.server.BodyTooLarge(over.Limit) // the limit may be that of an http.MaxBytesHandler
	}
	if b.server.Pipeline.Status(err) != http.StatusInternalServerError {
		return err // err comes from a TimedBody
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		return b.server.BodyCut(err)
	}
	return b.server.BodyUnreadable(err)
}

// StdRequest returns the request for a standard handler. The result is a copy if middleware has added values to the
// context, or if the route has parameters. If the body is limited or has time limits, or if the pipeline has read
// it, the result is a copy with another body.
func (x *wire) StdRequest() *http.Request {
	most := x.s.Route.MaxBody
	if ctx := x.call.Context(x.Context()); ctx != x.Context() && ctx != x.Req.Context() {
		x.own = x.lasting()
		x.Req, x.copied = x.Req.WithContext(ctx), true
	}
	if !x.matched && x.call.Params() {
		x.matched = true
		x.call.SetMatch(x.ownRequest())
	}
	switch {
	case x.s.Loaded && len(x.s.Whole) > 0:
		x.ownRequest().Body, x.bodied = x.replayed(), true
	case x.bodied || x.ContentLength() == 0:
	case most > 0:
		body := x.timed()
		x.ownRequest().Body, x.bodied = http.MaxBytesReader(x.w, body, most), true
	default:
		if body := x.timed(); body != x.Req.Body {
			x.ownRequest().Body, x.bodied = body, true
		}
	}
	return x.Req
}

// ownRequest replaces the request by a copy, once. A handler must not change the original request.
func (x *wire) ownRequest() *http.Request {
	if !x.copied {
		own := *x.Req
		x.Req, x.copied = &own, true
	}
	return x.Req
}

// removeForm removes the files of a form that was parsed from a copy of the request. net/http does not remove them,
// because it does not know the copy.
func (x *wire) removeForm() {
	if x.copied {
		exchange.RemoveForm(x.Req)
	}
}

// replayed returns the body that the pipeline has read, from the start.
func (x *wire) replayed() *exchange.LentBody {
	if x.replay == nil {
		x.replay = new(exchange.LentBody)
	}
	x.replay.Lend(x.s.Whole)
	return x.replay
}
