package dunlin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// A producer makes a response when it is sent. It runs after the action has returned, on the same goroutine or, for a
// long response, on another goroutine, and may use the request. Its result is sent in place of the response. The result
// has the kind exchange.Sent if the producer has already sent the answer.
type producer func(r *Request, planned *exchange.Answer) Response

// Produce implements [exchange.Producer].
func (p producer) Produce(c exchange.Call, planned *exchange.Answer) exchange.Answer {
	return p(c.(*call).request(), planned).a
}

// producing returns r as a deferred response: produce makes it when it is sent.
func (r Response) producing(produce producer) Response {
	if r.a.Failed() {
		return r
	}
	r.a.EnsureOwn().Make = produce
	r.a.SetKind(exchange.Later)
	return r
}

// produce runs the producer of a deferred response and replaces the response by the producer's result. Both responses are claimed.
func (a *App) produce(r *Request, resp *Response) {
	planned := resp.a
	var made Response
	a.run(func(r *Request) Response { return Response{planned.Own().Make.Produce((*call)(r), &planned)} }, r, &made)
	if made.a.SameOwner(&planned) {
		*resp = made // the response is now complete
		a.applyLate(r, &resp.a)
		return
	}
	releaseMemory(&planned)
	if made.a.Kind() == exchange.Later { // from the function given to Recover, whose response must not be deferred again
		made = Problem(&ProblemDetails{Status: http.StatusInternalServerError})
	}
	*resp = made
	a.settle(r, resp, false)
}

// beginAnswer sends the head of a claimed answer.
func (r *Request) beginAnswer(planned *exchange.Answer, length int64) exchange.Sink {
	return r.beginEncoded(planned, length, true, func() { r.app.applyLate(r, planned) })
}

// failLate returns the failure that replaces planned. It has the headers of planned that do not describe the content.
func failLate(planned *exchange.Answer, err error) Response {
	failure := Error(err)
	for name, value := range planned.Headers {
		if !exchange.AboutContent[name] {
			failure = failure.push(exchange.Field{Name: name, Value: value})
		}
	}
	return failure
}

// maxHeldBack is the number of bytes of a stream that are held back. An error within these bytes can still be answered with
// its own status, and a stream that ends within them is sent as a response with a length.
const maxHeldBack = 8 << 10

// Stream answers 200 with a body that write produces when the response is sent: after the action has returned, on the same
// goroutine or on another. write may use the request. When write has returned, w fails. For HEAD, write is not called.
//
// The first 8 KB of the body are held back. If write returns before it has written more, the response has a length like
// any other. An error of write is then answered as by [Error]. If write has written more, the body is sent in pieces, and
// [Flush] of w sends the pending bytes. A later error or panic cuts the connection, so that the client detects that the
// body is incomplete. w.Write fails when the client has disconnected; write should return that error.
func Stream(contentType string, write func(w io.Writer) error) Response {
	r := Bytes(contentType, nil)
	if write == nil {
		return r.fail(errors.New("Stream was given a nil function"))
	}
	return r.producing(func(r *Request, planned *exchange.Answer) Response {
		return (&streamWriter{r: r, planned: planned, most: maxHeldBack}).run(write)
	})
}

// A Component renders HTML, such as a component of templ. Package templates makes components from templates of html/template.
type Component interface {
	Render(ctx context.Context, w io.Writer) error
}

// Render answers 200 with the HTML of c, in UTF-8. It renders the whole component before it returns. An error is
// answered as by [Error], and no part of the page is sent. To send a page while it is rendered use [Stream].
func Render(r *Request, c Component) Response {
	x, err := exchange.Rendered(&blockHTML.block, func(w io.Writer) error { return c.Render(r.Context(), w) })
	if err != nil {
		return Error(fmt.Errorf("render HTML: %w", err))
	}
	return Response{x.Answer(http.StatusOK, view.String(x.Buf))}
}

// Flush sends the bytes that were written to the writer of a Stream so far. It fails with http.ErrNotSupported if standard
// middleware around the action cannot flush.
func Flush(w io.Writer) error {
	if f, ok := w.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return http.ErrNotSupported
}

// A streamWriter is the writer of a stream. It holds back the first bytes and sends the rest.
type streamWriter struct {
	use     exchange.Use // guards against use by several goroutines
	r       *Request
	planned *exchange.Answer // claimed
	held    []byte
	room    *exchange.Room // memory for held; nil if no route matched
	most    int            // maximum number of bytes to hold back
	sink    exchange.Sink  // non-nil once the head has been sent
	err     error          // error of the connection
}

// run calls write, which produces the body of the response.
func (w *streamWriter) run(write func(io.Writer) error) Response {
	sent := bare(w.planned.Status(), exchange.Sent)
	switch {
	case !exchange.BodyAllowed(w.planned.Status()):
		w.planned.SetKind(exchange.Complete)
		return Response{*w.planned}
	case w.r.s.Method == http.MethodHead:
		w.r.beginAnswer(w.planned, -1).Finish(nil)
		return sent
	}
	if w.r.route != nil {
		w.room = &w.r.route.room
	}
	err := w.call(write)
	switch {
	case w.sink == nil && err == nil:
		w.room.Used(len(w.held), w.most)
		w.planned.Body = view.String(w.held)
		w.planned.SetKind(exchange.Complete)
		return Response{*w.planned}
	case w.sink == nil:
		return w.failBefore(err)
	case err == nil:
		w.sink.Finish(nil)
		return sent
	}
	level := slog.LevelError
	if w.err != nil || errors.Is(err, context.Canceled) && w.r.Context().Err() != nil {
		level = slog.LevelDebug // the client has disconnected, which is no error of the server
	}
	w.r.app.log.Log(w.r.logContext(), level, "stream failed", "error", err.Error(), "route", w.r.Route(), "id", w.r.ID())
	w.r.app.callOnError(w.r, err)
	panic(http.ErrAbortHandler)
}

// failBefore answers an error of a stream that has sent nothing.
func (w *streamWriter) failBefore(err error) Response {
	if w.r.app.onError == nil {
		return failLate(w.planned, err)
	}
	w.r.told = true
	if resp := w.r.app.onError(w.r, err); resp.a.Kind() != exchange.Missing && resp.a.Kind() != exchange.Later {
		return resp
	}
	return failLate(w.planned, err)
}

func (w *streamWriter) call(write func(io.Writer) error) error {
	defer w.r.cutAfter(func() bool { return w.sink != nil })
	defer w.use.End()
	return write(w)
}

// cutAfter handles a panic after a part of the answer has been sent. Call it by defer. The panic cannot become a 500, so
// cutAfter logs it and cuts the connection.
func (r *Request) cutAfter(begun func() bool) {
	v := recover()
	if v == nil {
		return
	}
	if !begun() || v == http.ErrAbortHandler {
		panic(v)
	}
	r.app.log.ErrorContext(r.logContext(), "panic after part of the answer was sent", "panic", fmt.Sprint(v),
		"route", r.Route(), "id", r.ID(), "stack", string(debug.Stack()))
	panic(http.ErrAbortHandler)
}

// Write adds p to the body.
func (w *streamWriter) Write(p []byte) (int, error) {
	if err := w.use.Begin(); err != nil {
		return 0, err
	}
	defer w.use.Done()
	if w.sink == nil {
		if len(w.held)+len(p) <= w.most {
			w.held = w.room.Append(w.held, p)
			return len(p), nil
		}
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	return w.recordError(w.sink.Write(p))
}

// Flush sends the bytes written so far.
func (w *streamWriter) Flush() error {
	if err := w.use.Begin(); err != nil {
		return err
	}
	defer w.use.Done()
	if err := w.begin(); err != nil {
		return err
	}
	err := w.sink.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return err // the connection is intact
	}
	_, err = w.recordError(0, err)
	return err
}

// begin sends the head and the bytes held back.
func (w *streamWriter) begin() error {
	if w.sink != nil {
		return w.err
	}
	w.room.Used(len(w.held), w.most)
	w.sink = w.r.beginAnswer(w.planned, -1)
	releaseMemory(w.planned)
	_, err := w.recordError(w.sink.Write(w.held))
	w.held = nil
	return err
}

func (w *streamWriter) recordError(n int, err error) (int, error) {
	if err != nil {
		w.err = err
	}
	return n, err
}

// encodeLater implements ext.EncodeLater.
func (r Response) encodeLater(decide func(head Response, size int64) (Response, func(io.Writer) exchange.Encoder)) Response {
	announces := r.a.Kind() == exchange.Complete && r.a.Body == "" && r.a.Announced() != 0
	if r.a.Failed() || decide == nil || r.a.Kind() != exchange.Later && !announces {
		return r
	}
	a, ok := r.a.Branch() // the original response is not encoded
	if !ok {
		return Response{}.fail(exchange.ErrStale)
	}
	encoding := func() *exchange.Encoding {
		return &exchange.Encoding{Decide: func(a exchange.Answer, size int64) (exchange.Answer, func(io.Writer) exchange.Encoder) {
			resp, encoder := decide(Response{a}, size)
			return resp.a, encoder
		}}
	}
	if announces {
		return Response{encoding().Head(a)}
	}
	return sentThrough(a, encoding)
}

// sentThrough adds an encoding or a tap to a deferred response.
func sentThrough(a exchange.Answer, encoding func() *exchange.Encoding) Response {
	made := a.Own().Make
	a.Own().Make = producer(func(req *Request, planned *exchange.Answer) Response {
		e, more := encoding(), req.more()
		e.Around, more.encoding = more.encoding, e
		defer func() {
			more.encoding = e.Around
			e.End()
		}()
		done := made.Produce((*call)(req), planned)
		e.Complete(planned, &done, req.s.Method)
		return Response{done}
	})
	return Response{a}
}

// Tap adds a tap, which sees the body as it is sent, to a deferred response. It returns other responses unchanged.
func (*inside) Tap(r Response, tap exchange.Tap) (tapped Response, ok bool) {
	if r.a.Failed() || r.a.Kind() != exchange.Later {
		return r, false
	}
	a, ok := r.a.Branch()
	if !ok {
		return Response{}.fail(exchange.ErrStale), false
	}
	return sentThrough(a, func() *exchange.Encoding { return &exchange.Encoding{Tap: tap} }), true
}

// beginEncoded is Wire.Begin for an answer that middleware may encode as it is sent. settle adds the headers
// of features, after the encoding has changed the head.
func (r *Request) beginEncoded(planned *exchange.Answer, length int64, claimed bool, settle func()) exchange.Sink {
	var wrap func(exchange.Sink) exchange.Sink
	if r.uncommon != nil && r.uncommon.encoding != nil {
		claimed = claimed && planned.Own() != nil
		if claimed {
			planned.Reopen()
		}
		wrap, length = r.uncommon.encoding.Begin(planned, r.s.Method, length, func(from, to exchange.Answer) {
			r.app.log.Error("the encoder of a stream changed more than headers", "from", Response{from}.String(), "to", Response{to}.String())
		})
		if claimed {
			planned.Claim()
		}
	}
	settle()
	if wrap == nil {
		return r.wire.Begin(planned, length)
	}
	return wrap(r.wire.Begin(planned, length))
}

// EncodeLater implements ext.EncodeLater.
func (*inside) EncodeLater(resp Response, decide func(head Response, size int64) (Response, func(io.Writer) exchange.Encoder)) Response {
	return resp.encodeLater(decide)
}
