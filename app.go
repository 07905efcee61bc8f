package dunlin

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/gcpace"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/internal/loophttp"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
	"github.com/dunlinhttp/dunlin/internal/sse"
	"github.com/dunlinhttp/dunlin/internal/stdhttp"
	"github.com/dunlinhttp/dunlin/internal/tally"
	"github.com/dunlinhttp/dunlin/internal/tickets"
	"github.com/dunlinhttp/dunlin/router"
)

// An App is a set of routes and the server that answers them. Register routes with the methods of
// [Group], also while the app serves. Change other settings only before the first request.
type App struct {
	routes // the root group: no prefix

	config    Config
	router    router.Router[*endpoint]
	onPanic   func(*Request, any) Response
	onError   func(*Request, error) Response
	amending  bool // answers are changed before they are sent, see apply
	amendsAll bool // this includes answers for which Request.featuresApplied is true
	observed  bool // a feature of the app has an Observe

	mu         sync.Mutex               // guards registration
	registered []*Route                 // in order
	named      map[string]*Route        // by the names given to Route.Name
	extensions map[any]any              // see Extension
	rewrites   rewrite.Rules            // see Rewrite
	careful    atomic.Bool              // lookups need findCarefully
	minBody    atomic.Int64             // the smallest body limit of all routes, in bytes
	areas      router.Router[*endpoint] // the prefixes of groups with a fallback

	secure   *secureOnly // handling of requests in clear text; nil serves them
	ports    lifecycle.Ports
	inner    []*App       // see Inner
	isInner  bool         // made by Inner
	renewal  sync.Once    // starts the renewal of certificates
	tickets  tickets.Keys // of TLS sessions
	servers  *lifecycle.Servers
	memory   *appMemory
	parts    tally.Parts       // added to Stats by package ext
	shed     admission.Shed    // counts of refused and cut requests, by reason
	logs     *logqueue.Queue   // to the handler of config.Logger
	asyncLog *slog.Logger      // writes to logs without waiting for the handler
	log      *slog.Logger      // writes to logs and waits for a short time
	outages  logqueue.Repeated // limits log lines about unavailable dependencies
	drains   sse.Drain         // open streams of events
	server   exchange.Server   // the part of the app that adapters use
	loop     loophttp.Service  // the loop engine
	std      *stdhttp.Service  // the net/http engine
}

// routes is Group under a name that leaves App.Group free for the method.
type routes = Group

// appMemory is the memory limit, which an app shares with its inner apps.
type appMemory struct {
	gcpace.Process
	Budget memory.Budget // for the memory that clients make the server hold
}

// New returns an App. It panics if a setting of config is invalid.
func New(config Config) *App {
	a := &App{config: config.withDefaults(), servers: new(lifecycle.Servers), memory: new(appMemory)}
	a.memory.Budget.Now = memory.Clock
	if err := a.config.validate(); err != nil {
		panic("dunlin: New: " + err.Error())
	}
	a.logs = logqueue.New(a.config.Logger.Handler())
	return a.begin()
}

// begin completes an app that has its settings, servers, memory and logs.
func (a *App) begin() *App {
	a.routes.app, a.routes.timeout = a, a.config.Timeouts.Action
	a.asyncLog, a.log = a.logs.Logger(), a.logs.Patient()
	a.tellAdapters()
	a.extensions = map[any]any{exchange.ServerKey{}: &a.server}
	a.std, a.secure = stdhttp.NewService(&a.server), newSecureOnly(&a.config)
	a.amending = a.config.Problems != nil || a.secure != nil && a.secure.hsts != nil
	a.amendsAll = a.amending
	a.minBody.Store(int64(a.config.Limits.MaxBody))
	a.routes.fallback = new(groupFallback)
	a.routes.fallback.Store(fallbackSource{
		notFound: func(*Request) Response { return NotFound() },
		notAllowed: func(r *Request) Response {
			return Problem(&ProblemDetails{
				Status: http.StatusMethodNotAllowed,
				Detail: "the path takes " + r.match.Allow() + ", not " + r.Method(),
			})
		},
	}.wrap(&a.routes, nil))
	return a
}

// Config returns the settings of the app, with defaults filled in. Callers must not change the
// values that its pointers and slices refer to.
func (a *App) Config() Config { return a.config }

// ServeHTTP implements http.Handler. Any server can serve an App, any mux can mount it, and any
// middleware can wrap it.
func (a *App) ServeHTTP(w http.ResponseWriter, req *http.Request) { a.std.ServeHTTP(w, req) }

// Recover sets the function that answers after an action has panicked. It must be safe for concurrent
// use. panicked is the value of the panic, which has been logged with its stack. Default: a 500 problem.
func (a *App) Recover(f func(r *Request, panicked any) Response) { a.onPanic = f }

// OnError sets the function that is called once for each failed request. A request fails if a typed
// action or an action given to [Try] returns an error; if its response reports a failure
// ([Error], a [Problem] with a cause, an invalid response); or if a stream fails. f must be safe
// for concurrent use. Set it before the first request.
//
// The response of f is sent in two cases: for an error returned by an action, before middleware
// sees the response, and for a stream that has sent nothing. In other cases it is ignored. If f
// returns the zero Response, the response is that of [Error]. f is not called for panics, see Recover.
func (a *App) OnError(f func(r *Request, err error) Response) { a.onError = f }

// findCarefully looks up routes for apps with versions, rewritten paths, or constraint functions,
// which may block and panic.
func (a *App) findCarefully(r *Request, host string) (act Action) {
	defer func() {
		if v := recover(); v != nil {
			r.match, r.route, r.s.Route = router.Match[*endpoint]{}, nil, &a.server.Unmatched // the match may be incomplete
			r.within(nil)
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

// varying is the action for a route that was chosen by the Accept header. It adds Vary: Accept to the
// answer, including an answer of middleware.
func varying(r *Request) Response { return r.finished(r.route.action(r)) }

// finished returns a response as middleware sees it: a problem is in the format of Config.Problems, and Vary contains Accept
// if the Accept header chose the route. It is called inside all middleware, such as a cache, and also outside.
func (r *Request) finished(resp Response) Response {
	if r.app.config.Problems != nil {
		if details := resp.a.Problem(); details != nil {
			resp = r.app.formatted(r, resp, details)
		}
	}
	if !r.match.Varies() || resp.a.Varies("Accept") {
		return resp
	}
	return resp.AddHeader("Vary", "Accept")
}

// found returns the action for the outcome of a lookup.
func (a *App) found(r *Request, host string, outcome router.Outcome) Action {
	if outcome == router.OutcomeFound {
		r.matched(r.match.Value())
		return r.route.action
	}
	return a.missing(r, host, outcome)
}

// Extension implements ext.Extension.
func (*inside) Extension(a *App, key any, make func() any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.extensions[key]
	if !ok {
		v = make()
		a.extensions[key] = v
	}
	return v
}
