package dunlin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/problem"
	"github.com/dunlinhttp/dunlin/router"
)

// A pipeline is an App as adapters see it.
type pipeline App

func (p *pipeline) app() *App { return (*App)(p) }

// NewCall returns a new Request on top of w.
func (p *pipeline) NewCall(w exchange.Wire) exchange.Call {
	r := &Request{app: p.app(), wire: w}
	r.s.Route = &r.app.server.Unmatched
	return (*call)(r)
}

func (p *pipeline) IsDraining() bool         { return p.servers.IsDraining() }
func (p *pipeline) IsRestarting() bool       { return p.servers.Restarting() }
func (p *pipeline) LeastBody() int64         { return p.minBody.Load() }
func (p *pipeline) Takes(method string) bool { return p.router.Takes(method) }

func (p *pipeline) Problem(status int, detail string, cause error) error {
	return &ProblemDetails{Status: status, Detail: detail, Cause: cause}
}

func (p *pipeline) Status(err error) int                       { return problem.StatusOf(err) }
func (p *pipeline) NoMemory(what string, met memory.Cap) error { return p.app().noMemory(what, met) }
func (p *pipeline) NotNow(detail string) exchange.Answer {
	return notNow(http.StatusServiceUnavailable, detail).a
}

// Answer is Error for a problem of an adapter. The cause of the problem is only logged.
func (p *pipeline) Answer(err error) exchange.Answer {
	if p, ok := errors.AsType[*ProblemDetails](err); ok {
		return Problem(p).a
	}
	return Error(err).a
}

func (p *pipeline) Late(route *exchange.Route) exchange.Answer {
	route.Counts.Timeouts.Add(1)
	if n, due := route.LateLines.Note(); due {
		p.asyncLog.Error("action took too long, answered with 503", "timeout", route.Timeout, "route", route.Pattern, "count", n)
	}
	return Problem(&ProblemDetails{Status: http.StatusServiceUnavailable, Detail: exchange.ErrLate.Error()}).a
}

func (c *call) State() *exchange.State { return &c.s }

func (c *call) Begin(read bool) {
	c.request().begin()
	c.unread = !read
}

func (c *call) Find(host string) bool {
	if c.app.careful.Load() {
		return false
	}
	r := c.request()
	r.begin()
	outcome := r.app.router.Lookup(r.s.Method, host, r.s.Path, &r.match)
	if outcome == router.OutcomeFound { // as in found, which the compiler does not inline
		r.matched(r.match.Value())
		r.act = r.route.action
	} else {
		r.act = r.app.missing(r, host, outcome)
	}
	if r.app.secure != nil {
		r.app.secure.instead(r)
	}
	return true
}

func (c *call) FindCarefully(host string) {
	r := c.request()
	r.begin()
	r.act = r.app.findCarefully(r, host)
	if r.app.secure != nil {
		r.app.secure.instead(r)
	}
}

func (c *call) Run() exchange.Answer {
	r := c.request()
	var resp Response
	returned := (!r.s.Route.ExpectsPending() || r.awaitMemory(&resp)) && r.app.run(r.act, r, &resp)
	featuresApplied := r.app.amending && returned && r.featuresApplied()
	if k := resp.a.Kind(); k != exchange.Later && (k != exchange.Complete || resp.a.Own() != nil || r.uncommon != nil || (r.app.amendsAll || r.app.amending && !featuresApplied) || r.app.servers.IsDraining()) {
		r.app.settle(r, &resp, featuresApplied)
	}
	return resp.a
}

func (c *call) Produce(a exchange.Answer) exchange.Answer {
	resp := Response{a}
	c.app.settle(c.request(), &resp, false)
	return resp.a
}

func (c *call) Drop(a exchange.Answer) {
	if a.Own() != nil && a.Claim() {
		a.Release()
	}
	r := c.request()
	r.releaseLimits()
	r.discard()
}

func (c *call) Decorate(a exchange.Answer, source exchange.Source) exchange.Answer {
	r, resp := c.request(), Response{a}
	r.source = source
	r.app.apply(r, &resp, false)
	if resp.a.Own() != nil {
		resp.a.Claim()
	}
	return resp.a
}

func (c *call) Hooked() bool {
	if c.app.amending || c.app.observed || c.request().features().Observed() {
		return true
	}
	c.shared.Lock()
	defer c.shared.Unlock()
	return c.watch != nil && len(c.watch.observers) > 0
}

func (c *call) Observe(a exchange.Answer, took time.Duration) { c.app.observe(c.request(), &a, took) }
func (c *call) Clock()                                        { c.request().watched().since = time.Now() }

func (c *call) InheritFrom(late exchange.Call) { c.request().takeWatch(late.(*call).request()) }

func (c *call) Context(own context.Context) context.Context { return c.request().contextOver(own) }

func (c *call) Params() bool                  { return c.match.Len() > 0 || c.s.Sent != "" }
func (c *call) SetMatch(req *http.Request)    { c.request().setMatch(req) }
func (c *call) DetachBody(body string) []byte { return c.request().passOn(body) }
func (c *call) Abandon()                      { c.request().releaseBody() }
func (c *call) End()                          { c.request().end() }
func (c *call) Ended() bool                   { return c.ended.IsSet() }
