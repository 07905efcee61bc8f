package stdhttp

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The body of a request on net/http.

func (x *wire) hasBody() bool { return x.Req.Body != nil && x.Req.Body != http.NoBody }

// Received returns nothing: net/http reads bodies as they are asked for.
func (x *wire) Received() ([]byte, bool) { return nil, false }

func (x *wire) Body(most int64) io.Reader {
	if !x.hasBody() {
		return &exchange.Reader{}
	}
	if n := x.Req.ContentLength; x.direct && 0 < n && n <= most {
		return problemBody{x.timed(), x.service.Server} // net/http gives no more than it has announced
	}
	// MaxBytesReader also tells the server not to keep a connection whose body
	// was not read to its end.
	return problemBody{http.MaxBytesReader(x.w, x.timed(), most), x.service.Server}
}

// RefuseBody closes a connection of HTTP/1 after the answer: else the server reads a body
// of up to 256 KB before it answers. Of HTTP/2 it ends the stream.
func (x *wire) RefuseBody() {
	if x.Req.ProtoMajor < 2 {
		x.CloseAfter()
	}
}

// remaining returns the body if some of it may be left, and how long that may take is
// ours to bound; else nil.
func (x *wire) remaining() *TimedBody {
	if !x.hasBody() {
		return nil
	}
	if x.inner {
		return nil // the wire of the request that the middleware was given sees to it
	}
	if b, ours := x.timed().(*TimedBody); ours && !b.Ended() {
		return b
	}
	return nil
}

// timed returns the body of the request, bounded in time if the connection is
// one of a server of our own.
func (x *wire) timed() io.ReadCloser {
	if x.timedBody == nil {
		if x.timedBody = NewTimedBody(x.Req); x.timedBody == nil {
			return x.Req.Body
		}
	}
	return x.timedBody
}

// skipBody reads what the action has left of the body, since net/http does so before it
// answers, for as long as the client likes. As on the loop engine the connection closes
// when that is too much. Most requests have no body: for them this is inlined and a
// comparison.
func (x *wire) skipBody() {
	if x.Req.ContentLength != 0 {
		x.skipRest()
	}
}

func (x *wire) skipRest() {
	b := x.remaining()
	if b == nil || x.duplex || x.Req.Close || x.Req.Header.Get("Expect") != "" || x.w.Header().Get("Connection") == "close" {
		return // the answer comes first
	}
	// A body known to have more left is not touched: the action may read on while it answers, as on net/http.
	if x.Req.ContentLength-b.received.Load() > exchange.MaxDiscard || !b.skip(exchange.MaxDiscard) {
		x.CloseAfter()
	}
}

// stopBody bounds how long net/http goes on reading what is left of the body when the
// request is over, even if the connection closes then.
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

// problemBody gives the errors of net/http as problems: they are the client's fault.
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

// problem returns the problem of a body that net/http could not read.
func (b problemBody) problem(err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return b.server.BodyTooLarge(over.Limit) // that of http.MaxBytesHandler may be the lower one
	}
	if b.server.Pipeline.Status(err) != http.StatusInternalServerError {
		return err // a TimedBody's
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || err == io.ErrUnexpectedEOF {
		return b.server.BodyCut(err)
	}
	return b.server.BodyUnreadable(err)
}

// StdRequest returns the request as it came; with a body of our own if there is
// a limit on that, or the pipeline has read it.
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

// ownRequest makes a copy of the request, once: a handler must not change the one
// that it was given.
func (x *wire) ownRequest() *http.Request {
	if !x.copied {
		own := *x.Req
		x.Req, x.copied = &own, true
	}
	return x.Req
}

// removeForm removes the files of a form that was parsed from our own copy of the
// request, which net/http does not know of.
func (x *wire) removeForm() {
	if x.copied {
		exchange.RemoveForm(x.Req)
	}
}

// replayed returns the body that the pipeline has read, from its beginning.
func (x *wire) replayed() *exchange.LentBody {
	if x.replay == nil {
		x.replay = new(exchange.LentBody)
	}
	x.replay.Lend(x.s.Whole)
	return x.replay
}
