package dunlin

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/internal/ceiling"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/internal/loophttp"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
	"github.com/dunlinhttp/dunlin/internal/sse"
	"github.com/dunlinhttp/dunlin/internal/stdhttp"
	"github.com/dunlinhttp/dunlin/internal/tally"
	"github.com/dunlinhttp/dunlin/internal/tickets"
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
	onError   func(*Request, error) Response
	policies  []Policy
	observers []func(*AnswerInfo)

	mu         sync.Mutex               // guards registration
	registered []*Route                 // in order
	named      map[string]*Route        // by the names given to Route.Name
	results    caller.Results           // groups that do nothing without routes
	extensions map[any]any              // see Extension
	rewrites   rewrite.Rules            // see Rewrite
	careful    atomic.Bool              // lookups need findCarefully
	leastBody  atomic.Int64             // the least limit on bodies of any route, in bytes
	fallback   atomic.Pointer[fallback] // for requests that no route takes

	secure   *secureOnly // what becomes of requests in clear text; nil: they are served
	ports    lifecycle.Ports
	renewal  lifecycle.Task // of certificates
	tickets  tickets.Keys   // of TLS sessions
	servers  lifecycle.Servers
	memory   ceiling.Ceiling
	parts    tally.Parts       // of Stats, by others
	shed     admission.Shed    // what was refused or cut off, and why
	logs     *logqueue.Queue   // to the handler of config.Logger
	asyncLog *slog.Logger      // by logs: for code that must not wait for the handler
	log      *slog.Logger      // ... and for code that need not, but never for long
	outages  logqueue.Repeated // failures of what is away for a moment
	drains   sse.Drain         // open streams of events
	server   exchange.Server   // what adapters know of the app
	loop     loophttp.Service  // what event loops serve
	std      *stdhttp.Service  // what net/http serves
}

// routes is Group under a name that leaves App.Group free for the method.
type routes = Group

// New returns an App. It panics when a setting of config is not valid.
func New(config Config) *App {
	a := &App{config: config.withDefaults()}
	if err := a.config.validate(); err != nil {
		panic("dunlin: New: " + err.Error())
	}
	a.routes.app, a.routes.timeout = a, a.config.Timeout
	a.logs = logqueue.New(a.config.Logger.Handler())
	a.asyncLog, a.log = a.logs.Logger(), a.logs.Patient()
	a.memory.Init()
	a.tellAdapters()
	a.extensions = map[any]any{exchange.ServerKey{}: &a.server}
	a.std, a.secure = stdhttp.NewService(&a.server), newSecureOnly(&a.config)
	a.leastBody.Store(a.config.MaxBody)
	a.fallback.Store(fallbackSource{
		notFound: func(*Request) Response { return NotFound() },
		notAllowed: func(r *Request) Response {
			return Problem(ProblemDetails{
				Status: http.StatusMethodNotAllowed,
				Detail: "the path takes " + r.match.Allow() + ", not " + r.Method(),
			})
		},
	}.wrap(nil))
	return a
}

// Config returns the app's settings, with defaults in place of those that were not set. What they
// point to must not be changed.
func (a *App) Config() Config { return a.config }

// ServeHTTP answers a request of net/http: an App is an http.Handler, to be
// served by any server, mounted in any mux and wrapped by any middleware.
func (a *App) ServeHTTP(w http.ResponseWriter, req *http.Request) { a.std.ServeHTTP(w, req) }

// Recover sets the function that answers for an action that panicked with the
// given value. The panic has been logged with its stack. Default: a 500 problem.
func (a *App) Recover(f func(r *Request, panicked any) Response) { a.onPanic = f }

// OnError sets the function that is called, once, for each request that fails: because an action
// given to [Try], or a typed one, has returned an error; because a response reports a failure
// ([Error], a [Problem] with a cause, one that could not be built); or because a stream has failed.
// It must be safe for concurrent use, and be set before the first request.
//
// The response it returns is sent in two cases: for an error that an action returned, before
// middleware sees the response, and for a stream of which nothing has been sent. Else it is
// ignored. The zero Response stands for that of [Error]. Panics are for Recover.
func (a *App) OnError(f func(r *Request, err error) Response) { a.onError = f }

// Extension returns the value that the app has under key. If there is none, make is called for it,
// once. It lets packages that build on Dunlin keep what they know of an app. Like a context's key,
// key should be of a type of the package's own. make must not use the app.
func (a *App) Extension(key any, make func() any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.extensions[key]
	if !ok {
		v = make()
		a.extensions[key] = v
	}
	return v
}

// findCarefully is for apps with versions, rewritten paths, or constraints that may block and panic.
func (a *App) findCarefully(r *Request, host string) (act Action) {
	defer func() {
		if v := recover(); v != nil {
			r.match, r.route, r.s.Route = router.Match[*endpoint]{}, nil, &a.server.Unmatched // who knows what it found
			resp := a.recovered(r, v)
			act = func(*Request) Response { return resp }
		}
	}()
	accept := ""
	if a.router.Versioned() {
		accept = r.wire.List("Accept")
	}
	if a.rewrites.Any() {
		if to, ok := a.rewrites.Path(r.s.Path, &r.more().rewrite); ok {
			r.s.Sent, r.s.Path = r.own(r.s.Path), to
		}
	}
	found := a.found(r, host, a.router.LookupAccept(r.s.Method, host, r.s.Path, accept, &r.match))
	if r.match.Varies() && r.route != nil {
		return varying
	}
	return found
}

// varying is the action for a route that was chosen by the Accept header: what middleware answers by itself says so, too.
func varying(r *Request) Response { return r.varied(r.route.action(r)) }

// varied returns the response with Accept among what caches must look at, where the route was chosen by that. It is called
// inside of all middleware, for a cache there, and outside.
func (r *Request) varied(resp Response) Response {
	if !r.match.Varies() || resp.a.Varies("Accept") {
		return resp
	}
	return resp.AddHeader("Vary", "Accept")
}

// found returns the action for the outcome of a lookup.
func (a *App) found(r *Request, host string, outcome router.Outcome) Action {
	if outcome == router.Found {
		r.matched(r.match.Value())
		return r.route.action
	}
	return a.missing(r, host, outcome)
}
