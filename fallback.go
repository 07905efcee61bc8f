package dunlin

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/router"
)

// fallback holds the actions for requests without a route, wrapped in the middleware of the app.
type fallback struct {
	notFound, notAllowed, options, notAcceptable, dirty, redirect, noAsterisk Action

	source fallbackSource
}

// A fallbackSource holds the inputs from which the fallback actions are built.
type fallbackSource struct {
	notFound, notAllowed Action // without middleware
	middleware           []Middleware
}

// NotFound sets the action for requests whose path no route matches. All middleware of the app
// wraps it, whether added before or after.
func (a *App) NotFound(act Action) {
	a.setFallback("NotFound", act, func(s *fallbackSource) { s.notFound = act })
}

// MethodNotAllowed sets the action for requests whose path has routes, but none for the method. The
// app adds the Allow header to its response.
func (a *App) MethodNotAllowed(act Action) {
	a.setFallback("MethodNotAllowed", act, func(s *fallbackSource) { s.notAllowed = act })
}

func (a *App) setFallback(what string, act Action, change func(*fallbackSource)) {
	if act == nil {
		panic("dunlin: " + what + ": nil action (called at " + callerPlace() + ")")
	}
	a.changeFallback(change)
}

// changeFallback changes the inputs of the fallback actions and rebuilds them. It calls middleware
// without the lock, because middleware may register routes, and repeats if the inputs have changed
// meanwhile.
func (a *App) changeFallback(change func(*fallbackSource)) {
	at := caller.Here()
	for range 10 {
		before := a.fallback.Load()
		now := before.source
		change(&now)
		made := now.wrap(a, at)
		a.mu.Lock()
		if a.fallback.CompareAndSwap(before, made) {
			a.middleware = now.middleware
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
	}
	panic("dunlin: middleware changes the app that it is used in (called at " + at.String() + ")")
}

// wrap builds the fallback actions.
func (s fallbackSource) wrap(a *App, at *caller.Place) *fallback {
	varied := func(act Action) Action { return func(r *Request) Response { return r.finished(act(r)) } }
	wrap := func(act Action) Action { return varied(a.chain(varied(act), s.middleware, at, false)) }
	return &fallback{
		source:     s,
		notFound:   wrap(s.notFound),
		notAllowed: wrap(func(r *Request) Response { return s.notAllowed(r).Header("Allow", r.match.Allow()) }),
		options:    wrap(answerOptions),
		notAcceptable: wrap(func(r *Request) Response {
			return Problem(ProblemDetails{
				Status:     http.StatusNotAcceptable,
				Detail:     "the path exists, but in none of the versions that Accept asks for",
				Extensions: map[string]any{"versions": r.match.Versions()},
			})
		}),
		dirty: wrap(func(*Request) Response {
			return Problem(ProblemDetails{Status: http.StatusBadRequest, Detail: "the path has an empty segment, or one that is «.» or «..»"})
		}),
		redirect: wrap(func(r *Request) Response {
			return Redirect(r.uncommon.location).Status(http.StatusPermanentRedirect)
		}),
		noAsterisk: wrap(func(r *Request) Response {
			return Problem(ProblemDetails{Status: http.StatusBadRequest, Detail: "the target * is for OPTIONS alone, not for " + r.Method()})
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

// optionsOf returns the action for OPTIONS on a path that has routes, but none for OPTIONS. It runs
// the middleware of the route that a CORS preflight (Fetch standard, section 3.2.2) asks about, or
// else of the first method in Allow.
func (a *App) optionsOf(r *Request, host string) Action {
	var match router.Match[*endpoint]
	asked, _ := r.wire.Header("Access-Control-Request-Method")
	if asked == "" || a.router.Lookup(asked, host, r.s.Path, &match) != router.Found {
		first, _, _ := strings.Cut(r.match.Allow(), ",")
		if a.router.Lookup(first, host, r.s.Path, &match) != router.Found {
			return a.fallback.Load().options
		}
	}
	r.options = true
	return match.Value().around
}

// missing returns the action for a request without a route.
func (a *App) missing(r *Request, host string, outcome router.Outcome) Action {
	f := a.fallback.Load()
	switch {
	case r.s.Method == http.MethodOptions && r.s.Path == "*":
		return f.options
	case r.s.Method == http.MethodOptions && outcome == router.MethodNotAllowed:
		return a.optionsOf(r, host)
	case r.s.Path == "*": // RFC 9112 section 3.2.4
		return f.noAsterisk
	case outcome == router.MethodNotAllowed:
		return f.notAllowed
	case outcome == router.NotAcceptable:
		return f.notAcceptable
	}
	if r.s.Path == "" && r.s.Method == http.MethodConnect {
		return a.connect(r, host)
	}
	// Other lookups need a match of their own: r.Param reads offsets in
	// the path as sent.
	var match router.Match[*endpoint]
	clean, dirty := router.Clean(r.s.Path)
	found := dirty
	if dirty {
		policy := a.config.DirtyPaths
		o := a.router.Lookup(r.s.Method, host, clean, &match)
		if o == router.Found {
			policy = match.Value().dirty
		}
		switch {
		case policy == RefuseDirty:
			return f.dirty
		case policy == ServeDirty && o == router.Found:
			r.s.Path = clean // the handler's own request has the path as it was sent
			match.CopyTo(&r.match)
			r.matched(match.Value())
			return r.route.action
		}
		found = o == router.Found || o == router.MethodNotAllowed
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
	if a.router.Lookup(r.s.Method, host, "/", &r.match) == router.Found {
		if route := r.match.Value(); route.mount {
			r.matched(route)
			return route.action
		}
	}
	r.match = router.Match[*endpoint]{}
	return a.fallback.Load().notFound
}
