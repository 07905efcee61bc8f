package dunlin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A limit on the time an action may take works like this: when the time has
// passed, the client is answered with 503 and its connection closed, while the
// action runs on for as long as it likes. What it returns then is discarded. It
// keeps the memory of its request to itself until it ends, so nothing it does
// late can reach another request's answer.

// Timeout returns a group whose routes are answered with 503 when their action
// has not returned after d; zero sets no limit. It counts until the answer
// begins: a response that streams may take as long as it needs.
//
// The context of the request ends with the limit, so that the action can stop. Once
// the answer has begun the context has no deadline any more: what streams, and a
// connection that was hijacked, go on until the client leaves.
func (g *Group) Timeout(d time.Duration) *Group {
	if d < 0 {
		panic(fmt.Sprintf("dunlin: Timeout(%v): it must not be negative (called at %s)", d, callerPlace()))
	}
	sub := g.derive()
	sub.timeout = min(d, longest)
	return sub
}

// Timeout sets the limit of one route, see Group.Timeout. It belongs before the
// route's first request.
func (r *Route) Timeout(d time.Duration) *Route {
	if d < 0 {
		panic(fmt.Sprintf("dunlin: Timeout(%v): it must not be negative (called at %s)", d, callerPlace()))
	}
	r.shared.Timeout = min(d, longest)
	return r
}

// timedOut is the answer for an action that is late.
func timedOut() Response {
	return Problem(ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "the request took too long"})
}

// errTimedOut is what late code gets that still wants to use its connection.
var errTimedOut = &ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "the request took too long"}

// logLate notes that an action is late. It takes what it needs from the route and
// not from the request, which is the action's alone.
func (a *App) logLate(route *exchange.Route) {
	route.Counts.Timeouts.Add(1)
	a.aside.Error("action took too long, answered with 503", "timeout", route.Timeout, "route", route.Pattern)
}

// A limitedContext is the context of a request under a limit. It ends with
// context.DeadlineExceeded when the action has lost its answer, and not before: that is
// decided in one place, by who answers. Once the answer has begun it has no deadline.
type limitedContext struct {
	context.Context // what it derives from
	until           time.Time
	done            chan struct{}
	release         func() bool // ends the watch on what it derives from

	mu     sync.Mutex
	err    error
	lifted bool
	after  map[*byte]func()
}

func newLimitedContext(parent context.Context, until time.Time) *limitedContext {
	c := &limitedContext{Context: parent, until: until, done: make(chan struct{})}
	if parent.Done() != nil {
		c.release = context.AfterFunc(parent, func() { c.end(parent.Err()) })
	}
	return c
}

// end ends the context, unless it has ended.
func (c *limitedContext) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.done)
	after := c.after
	c.after = nil
	c.mu.Unlock()
	if c.release != nil {
		c.release()
	}
	for _, f := range after {
		f() // of package context, which cancels what derives from this and waits for nothing
	}
}

// lift takes the deadline away, because the answer has begun.
func (c *limitedContext) lift() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lifted = true
}

func (c *limitedContext) Deadline() (time.Time, bool) {
	c.mu.Lock()
	lifted := c.lifted
	c.mu.Unlock()
	until, ok := c.Context.Deadline()
	if !lifted && (!ok || c.until.Before(until)) {
		return c.until, true
	}
	return until, ok
}

func (c *limitedContext) Done() <-chan struct{} { return c.done }

func (c *limitedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc spares package context a goroutine for each context that derives from
// this one.
func (c *limitedContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*byte]func())
	}
	key := new(byte)
	c.after[key] = f
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.after[key]
		delete(c.after, key)
		return waiting
	}
}

// A stdRace decides who answers a request of net/http under a limit: the
// action's goroutine or the server's.
type stdRace struct {
	ctx   *limitedContext
	mu    sync.Mutex
	late  bool // the limit has passed: the action has lost its writer
	begun bool // the answer has begun: the limit is lifted
}

// begin reports whether the action may answer, and lifts the limit.
func (r *stdRace) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = !r.late
	if r.begun {
		r.ctx.lift()
	}
	return r.begun
}

// whileMine calls f unless the action has lost its writer, which cannot happen
// while f runs. Without a limit there is no race, and r is nil.
func (r *stdRace) whileMine(f func()) bool {
	if r == nil {
		f()
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.late {
		return false
	}
	f()
	return true
}

// expire reports whether the answer is the server's to give, because the action
// has not begun one.
func (r *stdRace) expire() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = !r.begun
	if r.late {
		r.ctx.end(context.DeadlineExceeded)
	}
	return r.late
}

// answerWithin is answer for a route with a limit: the action gets a goroutine
// of its own, so that this one can answer without it.
func (x *stdExchange) answerWithin(act Action, route *exchange.Route) bool {
	ctx := newLimitedContext(x.req.Context(), time.Now().Add(route.Timeout))
	defer ctx.end(context.Canceled)
	x.req, x.race = x.req.WithContext(ctx), &stdRace{ctx: ctx}
	late := x.inCaseOfLate()
	count := x.count // x may be the action's for longer
	x.count.shard = nil
	done := make(chan Response, 1)
	go x.runAside(act, done)
	timer := time.NewTimer(route.Timeout)
	defer timer.Stop()
	select {
	case resp := <-done:
		count.end(resp.a.Class())
		x.observe(&resp.a)
		x.sendSettled(&resp.a)
		return true
	case <-timer.C:
	}
	if !x.race.expire() {
		resp := <-done
		count.end(resp.a.Class())
		x.observe(&resp.a)
		x.sendSettled(&resp.a)
		return true
	}
	x.request.app.logLate(route)
	resp := timedOut()
	count.end(resp.a.Class())
	late.w.Header().Set("Connection", "close")
	late.request.takeWatch(&x.request)
	late.answerAlone(&resp, FromTimeout)
	late.leaveBody()
	go func() {
		<-done
		x.request.releaseBody()
	}()
	return false
}

// inCaseOfLate returns the exchange for the answer that is given without the action: it
// has nothing that the action may change.
func (x *stdExchange) inCaseOfLate() *stdExchange {
	late := &stdExchange{w: x.w, req: x.req}
	r, app := &late.request, x.request.app
	if len(app.policies) > 0 || len(app.observers) > 0 {
		own := *x.req
		own.Header = own.Header.Clone()
		late.req = &own
	}
	r.attach(app, late)
	r.begin(x.request.s.Method, x.request.s.Path, x.request.s.Query, false)
	r.s.Route = x.request.s.Route
	return late
}

// runAside runs the action and reports its response, also when it ends the
// goroutine.
func (x *stdExchange) runAside(act Action, done chan<- Response) {
	resp := Problem(ProblemDetails{Status: http.StatusInternalServerError, Cause: errGoexit})
	defer func() { done <- resp }()
	x.request.app.run(act, &x.request, &resp)
	x.request.app.settle(&x.request, &resp) // it recovers what it runs
}

var errGoexit = errors.New("the action ended its goroutine instead of returning")

// A lateSink is the way to a connection that somebody else has answered.
type lateSink struct{}

func (lateSink) Write([]byte) (int, error)                    { return 0, errTimedOut }
func (lateSink) Flush() error                                 { return errTimedOut }
func (lateSink) ReadFrom(io.Reader) (int64, error)            { return 0, errTimedOut }
func (lateSink) SetReadDeadline(time.Time) error              { return errTimedOut }
func (lateSink) SetWriteDeadline(time.Time) error             { return errTimedOut }
func (lateSink) EnableFullDuplex() error                      { return errTimedOut }
func (lateSink) Finish(http.Header)                           {}
func (lateSink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errTimedOut }
