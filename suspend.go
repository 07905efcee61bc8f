package dunlin

import (
	"context"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/suspend"
)

// A standard handler writes its answer, but middleware expects an action to return it. So does an action that calls an
// action of FromStd. In these cases the handler runs on a goroutine of its own. If its answer is too long to be gathered,
// or the handler flushes, the handler is suspended before the head is sent. The action returns a response with that head,
// which middleware may change. When the response is sent, the handler continues.
//
//	action's goroutine     handler's goroutine
//	serve ───────────────▶ ServeHTTP, Write …
//	return head ◀───────── commit: suspended
//	middleware, settle
//	carry out ───────────▶ head is sent, Write …
//	          ◀─────────── the handler has returned
//
// A handler that was registered by HandleStd or Mount and has no middleware runs on the action's goroutine.

// A suspension is a standard handler on a goroutine of its own.
type suspension struct {
	*suspend.Call[exchange.Answer, Response]
	w   *stdWriter
	end context.CancelFunc // ends the request's context
}

// alone reports whether the standard action of the request has no middleware.
func (r *Request) alone() bool {
	if rest := r.rest(); rest != nil {
		return rest.alone
	}
	return r.route != nil && r.route.alone && !r.match.Varies()
}

// serve runs a handler and returns its answer. rest is the chain inside standard middleware, or nil for a plain
// handler.
func (w *stdWriter) serve(h http.Handler, req *http.Request, rest *restOfChain) Response {
	ctx, end := req.Context(), context.CancelFunc(nil)
	alone := w.r.alone()
	if !alone {
		_, end = w.r.wire.Endable()
		ctx = w.r.context()
	}
	if rest != nil {
		ctx = context.WithValue(ctx, restKey{}, rest)
	}
	if ctx != req.Context() {
		req = req.WithContext(ctx)
	}
	if alone {
		return w.answer(h, req, rest)
	}
	s := &suspension{suspend.New[exchange.Answer, Response](), w, end}
	w.suspension = s
	s.Go(func() Response { return w.answer(h, req, rest) }, s.recovered)
	if resp, ended := s.Wait(); ended {
		return resp
	}
	w.r.more().suspended = s
	return Response{w.Head()}.because(rest).producing(s.produce)
}

func (w *stdWriter) answer(h http.Handler, req *http.Request, rest *restOfChain) Response {
	if rest != nil {
		defer rest.leave()
	}
	w.run(h, req)
	return w.response().because(rest)
}

// recovered returns the answer for a panic of the handler. It reports false for http.ErrAbortHandler, so that the action panics.
func (s *suspension) recovered(v any) (Response, bool) {
	if v == http.ErrAbortHandler {
		return Response{}, false
	}
	return s.w.r.app.recovered(s.w.r, v), true
}

// because returns the response with the error of the action inside standard middleware, if the action failed.
func (r Response) because(rest *restOfChain) Response {
	if rest != nil {
		if err := rest.failure(); err != nil {
			r.a.EnsureOwn().Err = err
		}
	}
	return r
}

// pause suspends the handler, and sends the head when the handler continues.
func (s *suspension) pause() (exchange.Sink, error) {
	planned := s.Pause()
	if planned == nil {
		return nil, errDiscarded
	}
	sink := s.w.r.beginAnswer(planned, s.w.Length())
	releaseMemory(planned)
	return sink, nil
}

// produce is the producer of the response of a suspended handler.
func (s *suspension) produce(r *Request, planned *exchange.Answer) Response {
	r.uncommon.suspended = nil
	return s.Resume(planned)
}

// discard ends a handler whose response middleware has replaced: the handler's context ends and its writes fail.
func (r *Request) discard() {
	if r.uncommon == nil || r.uncommon.suspended == nil {
		return
	}
	s := r.uncommon.suspended
	r.uncommon.suspended = nil
	s.end()
	s.GiveUp()
}
