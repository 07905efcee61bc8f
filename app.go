package dunlin

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/router"
)

// An App is a set of routes and the server that answers them. Register routes
// with the methods it has from [Group]; they may be added while it serves. The
// other settings belong before the first request.
type App struct {
	routes // the root group: no prefix

	config    Config
	router    router.Router[*endpoint]
	onPanic   func(*Request, any) Response
	exchanges sync.Pool // of *stdExchange

	mu         sync.Mutex               // guards registration
	registered []*Route                 // in order
	named      map[string]*Route        // by the names given to Route.Name
	notFound   Action                   // as given, without middleware
	notAllowed Action                   // likewise
	fallback   atomic.Pointer[fallback] // both, with the middleware of the app

	serving serving
	memory  memory
	shed    admission.Shed // what was refused or cut off, and why
	loop    loopState
	drains  drainWatch
}

// routes is Group under a name that leaves App.Group free for the method.
type routes = Group

// fallback holds the actions for requests that no route takes, and the
// middleware of the app that they are wrapped in.
type fallback struct {
	notFound, notAllowed, options, notAcceptable, dirty, redirect, noAsterisk Action
}

// New returns an App. It panics when a setting of config cannot hold.
func New(config Config) *App {
	a := &App{config: config.withDefaults()}
	if err := a.config.validate(); err != nil {
		panic("dunlin: New: " + err.Error())
	}
	a.routes.app, a.routes.timeout = a, a.config.Timeout
	a.exchanges.New = func() any {
		x := new(stdExchange)
		x.request.app, x.request.wire = a, x
		return x
	}
	a.notFound = func(*Request) Response { return NotFound() }
	a.notAllowed = func(r *Request) Response {
		return Problem(ProblemDetails{
			Status: http.StatusMethodNotAllowed,
			Detail: "the path takes " + r.match.Allow() + ", not " + r.Method(),
		})
	}
	a.refreshFallback(a.middleware)
	return a
}

// NotFound sets the action for requests whose path no route matches. It is
// wrapped in the middleware of the app, given to Use before or after.
func (a *App) NotFound(act Action) { a.setFallback("NotFound", &a.notFound, act) }

// MethodNotAllowed sets the action for requests whose path has routes, but not
// for their method. Its response gets the Allow header.
func (a *App) MethodNotAllowed(act Action) { a.setFallback("MethodNotAllowed", &a.notAllowed, act) }

func (a *App) setFallback(what string, slot *Action, act Action) {
	if act == nil {
		panic("dunlin: " + what + ": nil action (called at " + callerPlace() + ")")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	*slot = act
	a.refreshFallback(a.middleware)
}

// refreshFallback wraps the fallback actions in middleware, that of the app.
func (a *App) refreshFallback(middleware []Middleware) {
	notAllowed, place := a.notAllowed, callerPlace()
	wrap := func(act Action) Action { return chain(act, middleware, place) }
	a.fallback.Store(&fallback{
		notFound:   wrap(a.notFound),
		notAllowed: wrap(func(r *Request) Response { return notAllowed(r).Header("Allow", r.match.Allow()) }),
		options: wrap(func(r *Request) Response {
			if allow := r.match.Allow(); allow != "" {
				return NoContent().Header("Allow", allow)
			}
			return NoContent() // OPTIONS *
		}),
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
			return Redirect(r.location).Status(http.StatusPermanentRedirect)
		}),
		noAsterisk: wrap(func(r *Request) Response {
			return Problem(ProblemDetails{Status: http.StatusBadRequest, Detail: "the target * is for OPTIONS alone, not for " + r.Method()})
		}),
	})
}

// Recover sets the function that answers for an action that panicked with the
// given value. The panic has been logged with its stack. Default: a 500 problem.
func (a *App) Recover(f func(r *Request, panicked any) Response) { a.onPanic = f }

// find routes a request and returns the action for it.
func (a *App) find(r *Request, host string) Action {
	var outcome router.Outcome
	if !a.router.Versioned() {
		outcome = a.router.Lookup(r.method, host, r.path, &r.match)
	} else {
		outcome = a.router.LookupAccept(r.method, host, r.path, r.Header("Accept"), &r.match)
	}
	if outcome == router.Found {
		r.route = r.match.Value()
		return r.route.action
	}
	return a.missing(r, host, outcome)
}

// missing returns the action for a request that no route takes.
func (a *App) missing(r *Request, host string, outcome router.Outcome) Action {
	f := a.fallback.Load()
	switch {
	case r.method == http.MethodOptions && (outcome == router.MethodNotAllowed || r.path == "*"):
		return f.options
	case r.path == "*": // RFC 9112 section 3.2.4
		return f.noAsterisk
	case outcome == router.MethodNotAllowed:
		return f.notAllowed
	case outcome == router.NotAcceptable:
		return f.notAcceptable
	}
	// What else is looked up must not show in r.Param, whose places are those of
	// the path that was sent.
	var match router.Match[*endpoint]
	clean, dirty := router.Clean(r.path)
	if dirty && a.config.DirtyPaths == RefuseDirty {
		return f.dirty
	}
	found := dirty
	if dirty {
		o := a.router.Lookup(r.method, host, clean, &match)
		found = o == router.Found || o == router.MethodNotAllowed
	}
	if !found && a.config.RedirectSlash && clean != "/" && a.router.OtherSlash(r.method, host, clean, &match) {
		found = true
		if short, slash := strings.CutSuffix(clean, "/"); slash {
			clean = short
		} else {
			clean += "/"
		}
	}
	if !found {
		return f.notFound
	}
	r.location = string(router.AppendEscaped(nil, clean))
	if r.query != "" {
		r.location += "?" + r.RawQuery()
	}
	return f.redirect
}

// sortedKeys returns a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
