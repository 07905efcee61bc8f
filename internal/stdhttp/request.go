package stdhttp

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The body of a net/http request.

func (x *wire) hasBody() bool { return x.Req.Body != nil && x.Req.Body != http.NoBody }

// Received returns false: net/http reads bodies on demand.
func (x *wire) Received() ([]byte, bool) { return nil, false }

func (x *wire) Body(limit int64) io.Reader {
	if !x.hasBody() {
		return &exchange.Reader{}
	}
	if n := x.Req.ContentLength; x.direct && 0 < n && n <= limit {
		return problemBody{x.timed(), x.service.Server} // net/http returns at most the announced length
	}
	// MaxBytesReader also makes the server close a connection whose body was not read to its end.
	return problemBody{http.MaxBytesReader(x.w, x.timed(), limit), x.service.Server}
}

// RefuseBody closes an HTTP/1 connection after the answer; otherwise the server would read up to 256 KB of the body
// before it answers. With HTTP/2 it ends the stream.
func (x *wire) RefuseBody() {
	if x.Req.ProtoMajor < 2 {
		x.CloseAfter()
	}
}

// remaining returns the body if a part may be unread and its time limit is ours, otherwise nil.
func (x *wire) remaining() *TimedBody {
	if !x.hasBody() {
		return nil
	}
	if x.inner {
		return nil // the wire of the outer request handles it
	}
	if b, ours := x.timed().(*TimedBody); ours && !b.Ended() {
		return b
	}
	return nil
}

// timed returns the request body, with time limits if the connection belongs to a Server.
func (x *wire) timed() io.ReadCloser {
	if x.timedBody == nil {
		if x.timedBody = NewTimedBody(x.Req); x.timedBody == nil {
			return x.Req.Body
		}
	}
	return x.timedBody
}

// skipBody reads the rest of the body before the answer. net/http would read it without a time limit. As on the loop
// engine, the connection closes if the rest is too long. Most requests have no body: for them this is an inlined
// comparison.
func (x *wire) skipBody() {
	if x.Req.ContentLength != 0 {
		x.skipRest()
	}
}

func (x *wire) skipRest() {
	b := x.remaining()
	if b == nil || x.duplex || x.Req.Close || x.Req.Header.Get("Expect") != "" || x.w.Header().Get("Connection") == "close" {
		return // the answer precedes the body
	}
	// A body with more data left is not touched: the action may read while it answers, as on net/http.
	if x.Req.ContentLength-b.received.Load() > exchange.MaxDiscard || !b.skip(exchange.MaxDiscard) {
		x.CloseAfter()
	}
}

// stopBody limits the time in which net/http reads the rest of the body after the request, even if the connection
// closes then.
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

// problemBody turns the errors of net/http into problems caused by the client.
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
		return b.server.BodyTooLarge(over.Limit) // the limit may come from http.MaxBytesHandler
	}
	if b.server.Pipeline.Status(err) != http.StatusInternalServerError {
		return err // an error of a TimedBody
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || err == io.ErrUnexpectedEOF {
		return b.server.BodyCut(err)
	}
	return b.server.BodyUnreadable(err)
}

// StdRequest returns the original request. It has its own body if the body is limited or was read by the pipeline.
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

// ownRequest copies the request, once. A handler must not change the request that it was given.
func (x *wire) ownRequest() *http.Request {
	if !x.copied {
		own := *x.Req
		x.Req, x.copied = &own, true
	}
	return x.Req
}

// removeForm removes the files of a form parsed from our copy of the request, which net/http does not know.
func (x *wire) removeForm() {
	if x.copied {
		exchange.RemoveForm(x.Req)
	}
}

// replayed returns the body read by the pipeline, from its start.
func (x *wire) replayed() *exchange.LentBody {
	if x.replay == nil {
		x.replay = new(exchange.LentBody)
	}
	x.replay.Lend(x.s.Whole)
	return x.replay
}
