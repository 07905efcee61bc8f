package dunlin

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// UseStd is Use for standard middleware, on either engine. The first middleware sees the request first.
//
// The middleware is called once, by UseStd, with a handler for the rest of the chain, so all routes share its state.
// The actions inside get a separate request, with the headers, body, context and remote address that the middleware passed
// on. The route, its parameters and Request.Path do not change. The answer of an action is written to the ResponseWriter
// that the middleware passed on. The output of the middleware becomes the Response for the middleware outside, as with
// [FromStd]. The Err of that Response is the error of the action's response.
//
// The context of the request that the middleware passes on must derive from the context of the request that it received.
// If the middleware returns before an action, as http.TimeoutHandler does, the action may continue to use its request.
func (g *Group) UseStd(middleware ...func(http.Handler) http.Handler) {
	var h http.Handler = http.HandlerFunc(g.app.serveRest)
	for i := len(middleware) - 1; i >= 0; i-- {
		if middleware[i] != nil {
			h = middleware[i](h)
		}
		if middleware[i] == nil || h == nil {
			panic(fmt.Sprintf("dunlin: UseStd: middleware %d is nil or returned a nil handler (called at %s)", i, callerPlace()))
		}
	}
	g.use("UseStd", []layer{{std: h}})
}

// stdMiddleware is the action of UseStd around another action. alone reports that next calls a standard handler.
func stdMiddleware(h http.Handler, next Action, alone bool) Action {
	return func(r *Request) Response {
		rest := &restOfChain{act: next, outer: r, alone: alone, came: exchange.CredentialsOf(r.wire, &r.s, true), names: r.overlaid()}
		w := newStdWriter(r)
		return r.finished(w.serve(h, r.Std(), rest))
	}
}

// A restOfChain connects standard middleware with the action inside. It is a value of the request's context.
type restOfChain struct {
	act   Action
	alone bool                 // act calls a standard handler
	came  exchange.Credentials // the credentials before the middleware, which may remove them
	names []string             // the result of Request.overlaid, before the middleware

	mu    sync.Mutex
	outer *Request // nil once the middleware has returned
	err   error    // the cause of the action's failure
}

type restKey struct{}

var errRestLost = errors.New("standard middleware passed on a request whose context does not derive from that of the request it was given")

// enter makes r the request for the action. r gets the match of the outer request. If the match has parameters in the
// host, enter returns the host of the outer request. It reports false if the middleware has returned.
func (c *restOfChain) enter(r *Request) (host string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.outer
	if o == nil {
		return "", false
	}
	r.s.Path = o.Path()
	r.s.Follow(&o.s)
	r.s.Credentials = c.came
	r.s.Gather(o.s.Gathers())
	r.begin()
	o.match.CopyTo(&r.match)
	u := r.more()
	if o.uncommon != nil {
		u.location = o.uncommon.location
	}
	u.rest = c
	o.shared.Lock()
	r.id, r.act = o.id, c.act
	o.shared.Unlock()
	r.route, r.s.Route = o.route, o.s.Route
	r.values = append(r.values[:0], o.values...)
	r.options = o.options
	if r.match.Len() > 0 && r.match.InHost(0) {
		host = o.Host() // parameters are offsets in the matched host
	}
	return host, true
}

// exit copies to the outer request what the action has set in r: the ID, the source, the values and the credentials.
func (c *restOfChain) exit(r *Request) {
	c.outside(func(o *Request) {
		if !r.id.IsZero() {
			o.setID(r.id)
		}
		if r.source != exchange.FromAction {
			o.source = r.source
		}
		o.values = append(o.values[:0], r.values...)
		o.s.Credentials |= r.s.Credentials & exchange.Identified
	})
}

// outside calls f with the outer request, unless the middleware has returned.
func (c *restOfChain) outside(f func(o *Request)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outer != nil {
		f(c.outer)
	}
}

// failed records the cause of a failed response for the middleware outside and for the log. It reports false if the
// middleware has returned.
func (c *restOfChain) failed(err error) (known bool) {
	c.outside(func(*Request) { c.err, known = err, true })
	return known
}

// failure returns the error given to failed.
func (c *restOfChain) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// leave ends the use of the outer request, because the middleware has returned.
func (c *restOfChain) leave() {
	c.outside(func(*Request) { c.outer = nil })
}

// serveRest is the handler that standard middleware wraps. It runs the rest of the chain.
func (a *App) serveRest(w http.ResponseWriter, req *http.Request) {
	rest, ok := req.Context().Value(restKey{}).(*restOfChain)
	if !ok {
		a.log.Error("request failed", "error", errRestLost, "method", req.Method, "path", req.URL.Path)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	var r *Request
	a.std.ServeInner(w, req, func(c exchange.Call) (host string, ok bool) {
		r = c.(*call).request()
		return rest.enter(r) // false if the middleware has answered without waiting for the action
	}, func() { rest.exit(r) })
}
