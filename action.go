package dunlin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// A layer is middleware around an action.
type layer struct {
	wrap    Middleware
	std     http.Handler // standard middleware, see UseStd; wrap is nil
	fusible bool         // see the type fusible
	place   int          // index among the middleware given to Use or a route; -1 for a feature
}

// layersOf returns the layers of features and middleware, the outermost first. Adjacent features are fused.
func layersOf(f *features, middleware []layer) (all []layer) {
	wraps := func(in installed) bool { return in.Wrap != nil }
	for _, in := range f.Fused(wraps, func(outer, inner installed) (installed, bool) {
		if outer.fusible != nil {
			if both := outer.fusible.Fuse(inner.Feature); both != nil {
				return install(both), true
			}
		}
		return outer, false
	}) {
		all = append(all, layer{wrap: in.Wrap, fusible: in.fusible != nil, place: -1})
	}
	for i, m := range middleware {
		m.place = i
		all = append(all, m)
	}
	return all
}

// around returns act wrapped in the layer. std reports that act calls a standard handler.
func (l *layer) around(act Action, std bool) Action {
	if l.std != nil {
		return stdMiddleware(l.std, act, std)
	}
	return l.wrap(act)
}

// chain wraps act in layers. The first layer sees the request first. If the next action panics or returns
// the zero Response, a layer sees a 500. chain panics with the position of the registration if a layer
// returns a nil action. safe reports that act turns its own panics into a 500, as fusible layers do.
// Problems are formatted (Config.Problems) only before a layer that may read the body. Fusible layers do not
// read it. std reports that act calls a standard handler: it recovers its own panics and formats its problems.
func (a *App) chain(act Action, layers []layer, at *caller.Place, safe, std bool) Action {
	formatted := safe || a.config.Problems == nil
	for _, l := range slices.Backward(layers) {
		if !std && (!safe || !formatted && !l.fusible) {
			act = contained(act, false)
		}
		wrapped := l.around(act, std)
		switch {
		case wrapped == nil && l.place < 0:
			panic(fmt.Sprintf("dunlin: a feature returned a nil action (registered at %s)", at))
		case wrapped == nil:
			panic(fmt.Sprintf("dunlin: middleware %d returned a nil action (registered at %s)", l.place, at))
		}
		act, safe, formatted, std = wrapped, l.fusible, a.config.Problems == nil, l.std != nil
	}
	return act
}

// contained returns an action that calls act and turns a panic or the zero Response into a 500, for the
// middleware around it. If the Accept header chose the route, the responses have Vary: Accept. Panics with
// http.ErrAbortHandler and runtime.Goexit pass through. If options is set, OPTIONS requests for a path
// without an OPTIONS route are answered without a call of act.
func contained(act Action, options bool) Action {
	return func(r *Request) (resp Response) {
		returned, depth := false, r.depth
		defer func() {
			if returned {
				return
			}
			switch v := recover(); v {
			case nil: // runtime.Goexit
			case http.ErrAbortHandler:
				panic(v)
			default:
				r.depth = depth
				resp = r.finished(r.app.recovered(r, v))
			}
		}()
		if options && r.options {
			resp = answerOptions(r)
		} else {
			resp = act(r)
		}
		if returned = true; resp.a.Kind() == exchange.Missing {
			resp = resp.fail(errNoResponse)
		}
		return r.finished(resp)
	}
}

// run calls act and turns its panic into a response. A panic with http.ErrAbortHandler drops the
// connection. The response is passed by pointer because it would be copied at every return. run reports whether act
// has returned.
func (a *App) run(act Action, r *Request, resp *Response) (returned bool) {
	outer := r.depth
	defer func() {
		if r.depth != outer { // act has not returned
			a.rescue(r, resp, outer, recover())
		}
	}()
	r.depth = outer + 1
	*resp = act(r)
	r.depth = outer
	return true
}

// rescue ends a call of run whose act did not return. v is the value of the panic; it is nil after
// runtime.Goexit. rescue sets resp, except after Goexit.
func (a *App) rescue(r *Request, resp *Response, outer int32, v any) {
	if v == nil {
		r.discard()
		r.wire.Abandoned()
		r.releaseBody()
		return // runtime.Goexit: the goroutine ends, and the engine answers
	}
	r.depth = outer
	if v == http.ErrAbortHandler {
		*resp = bare(0, exchange.Abort)
		return
	}
	*resp = r.finished(a.recovered(r, v))
}

// recovered logs a panic with its stack. It answers with the function given to Recover, or with a
// plain 500.
func (a *App) recovered(r *Request, v any) (resp Response) {
	r.s.Route.Counts.Panics.Add(1)
	r.source = exchange.FromPanic
	a.log.ErrorContext(r.logContext(), "panic in an action",
		"panic", fmt.Sprint(v), "method", r.Method(), "path", r.Path(), "route", r.Route(), "id", r.ID(), "stack", string(debug.Stack()))
	resp = Problem(&ProblemDetails{Status: http.StatusInternalServerError})
	if a.onPanic == nil {
		return resp
	}
	defer a.contain("panic in the function given to Recover")
	return a.onPanic(r, v)
}

// settle prepares a response for sending. It applies the features, claims the response's own memory for
// the sender, logs a failure, and runs the producer of a deferred response. featuresApplied reports that
// the features have already wrapped the action.
func (a *App) settle(r *Request, resp *Response, featuresApplied bool) {
	if r.uncommon != nil {
		defer r.discard()       // ends a suspended handler whose response was replaced
		defer r.releaseLimits() // unless a stream releases them
	}
	if a.servers.IsDraining() && resp.a.Kind() != exchange.Sent {
		r.wire.CloseAfter()
	}
	if resp.a.Kind() == exchange.Missing {
		*resp = resp.fail(errNoResponse)
	}
	if a.amending && resp.a.Kind() == exchange.Complete {
		if resp.a.Stale() { // its memory may belong to another response, which features must not read
			*resp, featuresApplied = Response{}.fail(exchange.ErrStale), false
		}
		a.apply(r, resp, featuresApplied)
	}
	if resp.a.Own() == nil {
		return
	}
	if !resp.a.Claim() {
		*resp = Response{}.fail(exchange.ErrStale)
		a.apply(r, resp, false)
		resp.a.Claim() // the new response is owned by this request
	}
	if err := resp.a.Own().Err; err != nil && (r.rest() == nil || !r.rest().failed(err)) {
		if resp.a.Kind() == exchange.Complete && r.clientGone(resp) {
			resp.a.SetKind(exchange.Gone)
		}
		a.logFailure(r, resp)
		a.callOnError(r, err)
	}
	if resp.a.Kind() == exchange.Later {
		a.produce(r, resp)
	}
	if x := resp.a.Own(); x != nil { // drop the error and the problem before sending, which may take long: the memory budget does not count them
		x.ForgetProblem()
		if !r.s.Watched {
			x.Err = nil
		}
	}
}

// clientGone reports whether an action failed after the client had disconnected: the context of the
// request was cancelled, but not by its timeout.
func (r *Request) clientGone(resp *Response) bool {
	return (resp.a.Status() >= http.StatusInternalServerError || errors.Is(resp.a.Own().Err, context.Canceled)) &&
		r.Context().Err() == context.Canceled
}

// logFailure logs the cause of a failed response: failures of the server at level Error, errors of
// the client at level Debug. Refusals for lack of memory and failures caused by a timeout are
// logged at level Debug, because pipeline.Late logs timeouts. A 503 with Retry-After reports an
// unavailable dependency that affects many requests: such failures have at most one line a second.
func (a *App) logFailure(r *Request, resp *Response) {
	level, count := slog.LevelDebug, 0
	if resp.a.Kind() == exchange.Gone {
		if !a.log.Enabled(context.Background(), level) {
			return
		}
		a.log.DebugContext(r.logContext(), "client disconnected before the response", "error", logqueue.Error(resp.a.Own().Err), "method", r.Method(), "path", r.Path(), "route", r.Route(), "id", r.ID())
		return
	}
	if resp.a.Status() >= http.StatusInternalServerError && !isMemoryRefusal(resp.a.Own().Err) && !r.s.Route.TimedOut(r.context(), resp.a.Own().Err) {
		due := true
		if resp.a.Status() == http.StatusServiceUnavailable && resp.Get("Retry-After") != "" {
			count, due = a.outages.Note()
		}
		if due {
			level = slog.LevelError
		}
	}
	if !a.log.Enabled(context.Background(), level) {
		return // before the arguments are allocated
	}
	args := []any{"status", resp.a.Status(), "error", logqueue.Error(resp.a.Own().Err), "method", r.Method(), "path", r.Path(), "route", r.Route(), "id", r.ID()}
	if count > 0 {
		args = append(args, "count", count)
	}
	a.log.Log(r.logContext(), level, "request failed", args...)
}
