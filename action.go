package dunlin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// chain wraps act in middleware, the first of which sees the request first. Each sees the
// 500 of what panics or says nothing behind it. chain panics, naming the place of the
// registration, when a middleware makes nil of its action. safe says that act has that 500 already.
func chain(act Action, middleware []Middleware, at *caller.Place, safe bool) Action {
	for i := len(middleware) - 1; i >= 0; i-- {
		if !safe {
			act = contained(act, false)
		}
		wrapped := middleware[i](act)
		if wrapped == nil {
			panic(fmt.Sprintf("dunlin: middleware %d returned a nil action (registered at %s)", i, at))
		}
		act, safe = wrapped, exchange.IsCalm(middleware[i])
	}
	return act
}

// contained returns act with its panic, or the zero Response, made one for the middleware around it, which sees Vary: Accept,
// too, also on what middleware behind it answers by itself. The panic of an abort goes on, and so does runtime.Goexit.
// With options, OPTIONS that has no action of its own is answered in place of act.
func contained(act Action, options bool) Action {
	if isStd(act) {
		return act // which does it itself
	}
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
				resp = r.varied(r.app.recovered(r, v))
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
		return r.varied(resp)
	}
}

// run calls act and makes a response of its panic, if it panics. A panic with
// http.ErrAbortHandler asks that the connection be dropped. The response goes
// through a pointer, since it would be copied at every return.
func (a *App) run(act Action, r *Request, resp *Response) {
	outer := r.depth
	defer func() {
		if r.depth != outer { // act has not returned
			a.rescue(r, resp, outer, recover())
		}
	}()
	r.depth = outer + 1
	*resp = act(r)
	r.depth = outer
}

// rescue ends run when act has not returned.
func (a *App) rescue(r *Request, resp *Response, outer int32, v any) {
	if v == nil {
		r.discard()
		r.wire.Abandoned()
		r.releaseBody()
		return // runtime.Goexit: the goroutine ends, the engine answers
	}
	r.depth = outer
	if v == http.ErrAbortHandler {
		*resp = bare(0, exchange.Abort)
		return
	}
	*resp = r.varied(a.recovered(r, v))
}

// recovered answers a panic, by the function given to Recover or with a plain
// 500. The panic is logged with its stack in either case.
func (a *App) recovered(r *Request, v any) (resp Response) {
	r.s.Route.Counts.Panics.Add(1)
	r.source = FromPanic
	a.log.ErrorContext(r.lasting(), "panic in an action",
		"panic", fmt.Sprint(v), "method", r.Method(), "path", r.Path(), "route", r.Route(), "id", r.ID(), "stack", string(debug.Stack()))
	plain := Problem(ProblemDetails{Status: http.StatusInternalServerError})
	if a.onPanic == nil {
		return plain
	}
	defer func() {
		if again := recover(); again != nil {
			a.log.Error("panic in the function given to Recover", "panic", fmt.Sprint(again), "stack", string(debug.Stack()))
			resp = plain
		}
	}()
	return a.onPanic(r, v)
}

// settle makes sure that a response can be sent: it claims what the response
// owns, has policies add their headers, logs why one failed, and carries out one
// that is made when it is sent.
// When it returns, the response is the sender's.
func (a *App) settle(r *Request, resp *Response) {
	if r.uncommon != nil {
		defer r.discard()       // unless it is carried out
		defer r.releaseLimits() // of a stream
	}
	if a.servers.IsDraining() && resp.a.Kind() != exchange.Sent {
		r.wire.CloseAfter()
	}
	if resp.a.Kind() == exchange.Missing {
		*resp = resp.fail(errNoResponse)
	}
	if a.amends() && resp.a.Kind() == exchange.Complete {
		a.apply(r, resp)
	}
	if resp.a.Own() == nil {
		return
	}
	if !resp.a.Claim() {
		*resp = Response{}.fail(exchange.ErrStale)
		a.apply(r, resp)
		resp.a.Claim() // nobody else has seen this one
	}
	if err := resp.a.Own().Err; err != nil && (r.rest() == nil || !r.rest().failed(err)) {
		if resp.a.Kind() == exchange.Complete && r.clientGone(resp) {
			resp.a.SetKind(exchange.Gone)
		}
		a.logFailure(r, resp)
		a.tell(r, err)
	}
	if resp.a.Kind() == exchange.Later {
		a.carryOut(r, resp)
	}
}

// clientGone reports whether an action failed and nobody waits for its answer any
// more: its context has ended, and not by its timeout.
func (r *Request) clientGone(resp *Response) bool {
	return (resp.a.Status() >= http.StatusInternalServerError || errors.Is(resp.a.Own().Err, context.Canceled)) &&
		r.Context().Err() == context.Canceled
}

// logFailure logs the cause of a response: what went wrong here at level Error, what the
// client did wrong at level Debug, and so what is refused for want of memory, and what was late because
// of its timeout, of which there is a line for all now and then. A 503 with Retry-After is seldom alone: what the
// action needs is away, for everybody. Of these there is one line a second.
func (a *App) logFailure(r *Request, resp *Response) {
	level, count := slog.LevelDebug, 0
	if resp.a.Kind() == exchange.Gone {
		if !a.log.Enabled(context.Background(), level) {
			return
		}
		a.log.DebugContext(r.lasting(), "client gone before its answer", "error", logqueue.Error(resp.a.Own().Err), "method", r.Method(), "path", r.Path(), "route", r.Route(), "id", r.ID())
		return
	}
	if resp.a.Status() >= http.StatusInternalServerError && !passing(resp.a.Own().Err) && !r.s.Route.TimedOut(r.context(), resp.a.Own().Err) {
		due := true
		if resp.a.Status() == http.StatusServiceUnavailable && resp.Get("Retry-After") != "" {
			count, due = a.outages.Note()
		}
		if due {
			level = slog.LevelError
		}
	}
	if !a.log.Enabled(context.Background(), level) {
		return // before the arguments are made
	}
	args := []any{"status", resp.a.Status(), "error", logqueue.Error(resp.a.Own().Err), "method", r.Method(), "path", r.Path(), "route", r.Route(), "id", r.ID()}
	if count > 0 {
		args = append(args, "count", count)
	}
	a.log.Log(r.lasting(), level, "request failed", args...)
}
