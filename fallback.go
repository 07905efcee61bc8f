package dunlin

import (
	"cmp"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/router"
)

// fallback holds the actions for requests without a route, wrapped in the middleware of the app or of a group.
type fallback struct {
	notFound, notAllowed, options, notAcceptable, dirty, redirect, noAsterisk Action

	source fallbackSource
}

// A fallbackSource holds the inputs from which the fallback actions are built.
type fallbackSource struct {
	notFound, notAllowed Action // without middleware; nil selects those of the outer group
	middleware           []layer
	features             *features
}

// groupFallback is the optional fallback of a group.
type groupFallback struct {
	atomic.Pointer[fallback]
	outer *groupFallback // of the parent group; nil for the app
}

// action returns the action that selected returns for the innermost group that has one. selected returns
// nil for a group without its own action.
func (f *groupFallback) action(selected func(*fallbackSource) Action) Action {
	for {
		if now := f.Load(); now != nil {
			if act := selected(&now.source); act != nil {
				return act
			}
		}
		f = f.outer
	}
}

// NotFound sets the action for requests to the host and below the prefix of the group whose path no route matches. All
// middleware of the group wraps it, including middleware added later. In a group this middleware also wraps the other
// answers of the app below the prefix: to wrong methods and versions, and to unclean paths. The innermost group applies,
// regardless of its version. A group without its own action uses the action of its parent. The app answers 404 by
// default.
func (g *Group) NotFound(act Action) {
	g.setFallback("NotFound", act, func(s *fallbackSource) { s.notFound = act })
}

// MethodNotAllowed sets the action for requests whose path has routes for other methods only. The app adds the Allow
// header to its response. Otherwise MethodNotAllowed is like NotFound. The app answers 405 by default.
func (g *Group) MethodNotAllowed(act Action) {
	g.setFallback("MethodNotAllowed", act, func(s *fallbackSource) { s.notAllowed = act })
}

func (g *Group) setFallback(what string, act Action, change func(*fallbackSource)) {
	if act == nil {
		panic("dunlin: " + what + ": nil action (called at " + callerPlace() + ")")
	}
	g.changeFallback(change, true)
}

// changeFallback changes the inputs of the fallback actions and rebuilds the actions. It calls middleware
// without the lock, because middleware may register routes, and repeats if the inputs have changed
// meanwhile. If another group with the same prefix and host already has fallback actions, changeFallback panics
// if must is set. Otherwise it changes only the middleware and features of the group.
func (g *Group) changeFallback(change func(*fallbackSource), must bool) {
	at, a := caller.Here(), g.app
	for range 10 {
		before, now := g.fallback.Load(), fallbackSource{}
		a.mu.Lock()
		middleware, features := g.middleware, g.features
		a.mu.Unlock()
		if now.middleware, now.features = middleware, features; before != nil {
			now = before.source
		}
		change(&now)
		made := now.wrap(g, at)
		a.mu.Lock()
		changed := g.fallback.Load() != before || len(g.middleware) != len(middleware) || g.features != features
		var err error
		if !changed {
			if before == nil {
				err = g.beginFallback(at)
			}
			if err == nil {
				g.fallback.Store(made)
			}
			if err == nil || !must {
				g.middleware, g.features = now.middleware, now.features
			}
		}
		a.mu.Unlock()
		if err != nil && must {
			panic("dunlin: NotFound or MethodNotAllowed: " + err.Error())
		}
		if !changed {
			return
		}
	}
	panic("dunlin: middleware changes the app that it is used in (called at " + at.String() + ")")
}

// beginFallback registers the group to answer requests without a route below its prefix. The caller holds the lock.
func (g *Group) beginFallback(at *caller.Place) error {
	return g.app.areas.Add(router.Route[*endpoint]{Methods: "*", Pattern: cmp.Or(g.prefix, "/"), Prefix: true, Host: g.host, Where: at, Value: &endpoint{below: g.fallback}})
}

// wrap builds the fallback actions of a group.
func (s fallbackSource) wrap(g *Group, at *caller.Place) *fallback {
	varied := func(act Action) Action { return func(r *Request) Response { return r.finished(act(r)) } }
	layers := layersOf(s.features, s.middleware)
	wrap := func(act Action) Action { return varied(g.app.chain(varied(act), layers, at, false, false)) }
	own := g.fallback
	notFound, notAllowed := func(s *fallbackSource) Action { return s.notFound }, func(s *fallbackSource) Action { return s.notAllowed }
	return &fallback{
		source:     s,
		notFound:   wrap(func(r *Request) Response { return own.action(notFound)(r) }),
		notAllowed: wrap(func(r *Request) Response { return own.action(notAllowed)(r).Header("Allow", r.match.Allow()) }),
		options:    wrap(answerOptions),
		notAcceptable: wrap(func(r *Request) Response {
			return Problem(&ProblemDetails{
				Status:     http.StatusNotAcceptable,
				Detail:     "the path exists, but not in a version that Accept requests",
				Extensions: map[string]any{"versions": r.match.Versions()},
			})
		}),
		dirty: wrap(func(*Request) Response {
			return Problem(&ProblemDetails{Status: http.StatusBadRequest, Detail: "the path has an empty segment, or one that is «.» or «..»"})
		}),
		redirect: wrap(func(r *Request) Response {
			return Redirect(r.uncommon.location).Status(http.StatusPermanentRedirect)
		}),
		noAsterisk: wrap(func(r *Request) Response {
			return Problem(&ProblemDetails{Status: http.StatusBadRequest, Detail: "the target * is only for OPTIONS, not for " + r.Method()})
		}),
	}
}

// answerOptions answers with the methods that have routes for the path.
func answerOptions(r *Request) Response {
	if allow := r.match.Allow(); allow != "" {
		return NoContent().Header("Allow", allow)
	}
	return NoContent() // OPTIONS *
}

// optionsOf returns the action for OPTIONS on a path that has routes for other methods only. It runs the middleware of the
// route for the method that a CORS preflight requests (Fetch standard, section 3.2.2), or for the first method in Allow.
func (a *App) optionsOf(r *Request, host string) Action {
	var match router.Match[*endpoint]
	asked, _ := r.wire.Header("Access-Control-Request-Method")
	if asked == "" || a.router.Lookup(asked, host, r.s.Path, &match) != router.OutcomeFound {
		first, _, _ := strings.Cut(r.match.Allow(), ",")
		if a.router.Lookup(first, host, r.s.Path, &match) != router.OutcomeFound {
			return a.routes.fallback.Load().options
		}
	}
	r.options = true
	r.within(match.Value().features)
	return match.Value().around
}

// missing returns the action for a request without a route.
func (a *App) missing(r *Request, host string, outcome router.Outcome) Action {
	f := a.routes.fallback.Load()
	var match router.Match[*endpoint] // for lookups of other paths, because r.match has offsets in the original path
	if strings.HasPrefix(r.s.Path, "/") && a.areas.Lookup(r.s.Method, host, r.s.Path, &match) == router.OutcomeFound {
		f = match.Value().below.Load()
		r.match.TakeParams(&match)
	}
	r.within(f.source.features)
	switch {
	case r.s.Method == http.MethodOptions && r.s.Path == "*":
		return f.options
	case r.s.Method == http.MethodOptions && outcome == router.OutcomeMethodNotAllowed:
		return a.optionsOf(r, host)
	case r.s.Path == "*": // RFC 9112 section 3.2.4
		return f.noAsterisk
	case outcome == router.OutcomeMethodNotAllowed:
		return f.notAllowed
	case outcome == router.OutcomeNotAcceptable:
		return f.notAcceptable
	}
	if r.s.Path == "" && r.s.Method == http.MethodConnect {
		return a.connect(r, host)
	}
	clean, dirty := router.Clean(r.s.Path)
	found := dirty
	if dirty {
		if a.areas.Lookup(r.s.Method, host, clean, &match) == router.OutcomeFound && match.Len() == 0 { // parameters would have offsets in clean
			f = match.Value().below.Load()
			r.within(f.source.features)
		}
		policy := a.config.UncleanPaths
		o := a.router.Lookup(r.s.Method, host, clean, &match)
		if o == router.OutcomeFound {
			policy = match.Value().dirty
		}
		switch {
		case policy == UncleanPathsRefuse:
			return f.dirty
		case policy == UncleanPathsServe && o == router.OutcomeFound:
			r.s.Path = clean // the handler's request keeps the original path
			match.CopyTo(&r.match)
			r.matched(match.Value())
			return r.route.action
		}
		found = o == router.OutcomeFound || o == router.OutcomeMethodNotAllowed
	}
	if !found && a.config.RedirectSlash && clean != "/" && a.router.OtherSlash(r.s.Method, host, clean, &match) {
		found, clean = true, a.rewrites.OtherSlash(r.s.Sent, clean)
	}
	if !found {
		return f.notFound
	}
	location := string(router.AppendEscaped(nil, clean))
	if r.s.Query != "" {
		location += "?" + r.RawQuery()
	}
	r.more().location = location
	return f.redirect
}

// connect returns the action for CONNECT to a host and port: a handler that is mounted for all
// paths.
func (a *App) connect(r *Request, host string) Action {
	if a.router.Lookup(r.s.Method, host, "/", &r.match) == router.OutcomeFound {
		if route := r.match.Value(); route.mount {
			r.matched(route)
			return route.action
		}
	}
	r.match = router.Match[*endpoint]{}
	return a.routes.fallback.Load().notFound
}
