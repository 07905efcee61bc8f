package dunlin

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/router"
)

// fallback holds the actions for requests that no route takes, and the
// middleware of the app that they are wrapped in.
type fallback struct {
	notFound, notAllowed, options, notAcceptable, dirty, redirect, noAsterisk Action

	source fallbackSource
}

// A fallbackSource is what the fallback actions are made of.
type fallbackSource struct {
	notFound, notAllowed Action // without middleware
	middleware           []Middleware
}

// NotFound sets the action for requests whose path no route matches. It is
// wrapped in the middleware of the app, given to Use before or after.
func (a *App) NotFound(act Action) {
	a.setFallback("NotFound", act, func(s *fallbackSource) { s.notFound = act })
}

// MethodNotAllowed sets the action for requests whose path has routes, but not
// for their method. Its response gets the Allow header.
func (a *App) MethodNotAllowed(act Action) {
	a.setFallback("MethodNotAllowed", act, func(s *fallbackSource) { s.notAllowed = act })
}

func (a *App) setFallback(what string, act Action, change func(*fallbackSource)) {
	if act == nil {
		panic("dunlin: " + what + ": nil action (called at " + callerPlace() + ")")
	}
	a.changeFallback(change)
}

// changeFallback changes what the fallback actions are made of. Middleware is
// code of others and may register routes: it is called without the lock, and
// again when the source has changed meanwhile.
func (a *App) changeFallback(change func(*fallbackSource)) {
	at := caller.Here()
	for range 10 {
		before := a.fallback.Load()
		now := before.source
		change(&now)
		made := now.wrap(at)
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

// wrap makes the fallback actions.
func (s fallbackSource) wrap(at *caller.Place) *fallback {
	varied := func(act Action) Action { return func(r *Request) Response { return r.varied(act(r)) } }
	wrap := func(act Action) Action { return varied(chain(varied(act), s.middleware, at, false)) }
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

// answerOptions says what methods a path has routes for.
func answerOptions(r *Request) Response {
	if allow := r.match.Allow(); allow != "" {
		return NoContent().Header("Allow", allow)
	}
	return NoContent() // OPTIONS *
}

// optionsOf returns the action for OPTIONS where the path has routes, but none for that: with
// the middleware of the route that is asked about, by a preflight of CORS (Fetch standard,
// section 3.2.2), or else of one of them.
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

// missing returns the action for a request that no route takes.
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
	// What else is looked up must not show in r.Param, whose places are those of
	// the path that was sent.
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

// connect returns the action for CONNECT to a host and port: a handler that is mounted
// for all paths.
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
