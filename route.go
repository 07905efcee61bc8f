package dunlin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/caller"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/router"
)

// A Group registers routes with a common prefix, host, version and middleware. An App is a group without these.
type Group struct {
	app           *App
	outer         *Group // parent group; nil for the app
	prefix        string
	host, version string
	timeout       time.Duration
	limits        []*limit
	maxBody       int64 // in bytes; 0: Config.Limits.MaxBody
	middleware    []layer
	features      *features
	fallback      *groupFallback
}

// A Route is a registered route. Its methods change the settings of the route.
type Route struct {
	endpoint
	app   *App
	index int // index in App.registered
	name  string
	about any // argument of ext.Describe
	group *Group
	at    *caller.Place // position of the registration

	methods, host, version string
}

// endpoint is the value that the router stores for a route: everything a request needs.
type endpoint struct {
	action   Action         // wrapped in its middleware
	shared   exchange.Route // part of the route for adapters
	features *features      // around action; nil for none
	around   Action         // answers OPTIONS if the path has no OPTIONS route: answerOptions in the middleware of the route
	limits   []*limit       // limits on concurrent requests
	alone    bool           // the action calls a standard handler or standard middleware, and nothing wraps it
	dirty    UncleanPaths   // policy for unclean paths whose clean path matches the route
	mount    bool           // the route is a mount: a standard handler for its path and all paths below it
	clear    bool           // the route is also served in clear text, regardless of Config.TLS.HSTS
	room     exchange.Room  // initial capacity of the buffers for the first bytes of streamed responses, see maxHeldBack
	below    *groupFallback // fallback of the group, for paths below its prefix
}

// Name names the route for App.URL. It panics if the name is taken.
func (r *Route) Name(name string) *Route {
	a := r.app
	a.mu.Lock()
	defer a.mu.Unlock()
	if other := a.named[name]; other != nil || name == "" {
		taken := "it is empty"
		if other != nil {
			taken = "route " + other.shared.Pattern + " has it"
		}
		panic(fmt.Sprintf("dunlin: route %s cannot be named %q: %s (called at %s)", r.shared.Pattern, name, taken, callerPlace()))
	}
	if a.named == nil {
		a.named = make(map[string]*Route)
	}
	a.named[name], r.name = r, name
	return r
}

// routeKey is the name of a route in the router. The name given by Route.Name is not known at registration.
func routeKey(index int) string { return "#" + strconv.Itoa(index) }

// Use adds middleware to the routes of this group and of groups made from it later. The first middleware sees the request
// first. Call Use before the routes are registered. It panics if this group, or a group made from it, already has a route,
// because that route would not have the middleware. An earlier [Route.Critical] route is allowed: it does not have the
// middleware. The middleware of a route also wraps the answer to OPTIONS for its path, see Options. The middleware of the
// app, and of a group with a call of NotFound or MethodNotAllowed, also wraps the answers of these two actions.
func (g *Group) Use(middleware ...Middleware) {
	for i, m := range middleware {
		if m == nil {
			panic(fmt.Sprintf("dunlin: Use: middleware %d is nil (called at %s)", i, callerPlace()))
		}
	}
	g.use("Use", plainLayers(middleware))
}

// use adds layers inside those that the group has. call names the exported method, for panics.
func (g *Group) use(call string, more []layer) {
	if len(more) > 0 {
		g.mustPrecedeRoutes(call)
	}
	if g.fallback.Load() != nil {
		g.changeFallback(func(s *fallbackSource) { s.middleware = withMore(s.middleware, more) }, true)
		return
	}
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	g.middleware = withMore(g.middleware, more)
}

// Install adds features. Features installed later are inside of earlier features, and features of a group are
// inside of the features of the app. Their functions apply as follows:
//
//   - Wrap wraps the actions of routes that are registered after Install, in this group and in groups made
//     from it later, and the app's own answers to requests without a route. It is outside of all middleware
//     given to Use, in any order of the calls.
//   - Headers and Observe of an app's feature apply to every answer: of actions, of the app (404, 405), after
//     a panic, at a timeout, over a limit and in an overload. The Headers of inner features run first.
//   - Headers and Observe of a group's feature apply to every answer for these routes, and to the answers below
//     the prefix of the group where no route matches, as if the group had called [Group.NotFound]. If several
//     groups have the same prefix and host, the first one answers there.
//
// Headers and Observe run on the goroutine that answers, which may be that of an event loop. The engine takes
// over the loop from a slow function as from a slow action. Call Install before the routes are registered and
// before the first request. It panics for a nil feature.
func (g *Group) Install(features ...Feature) {
	added, amends, amendsAll, observes := make([]installed, len(features)), false, false, false
	for i, f := range features {
		if f == nil {
			panic(fmt.Sprintf("dunlin: Install: feature %d is nil (called at %s)", i, callerPlace()))
		}
		added[i] = install(f)
		amends = amends || added[i].Headers != nil
		amendsAll = amendsAll || added[i].Headers != nil && added[i].fusible == nil
		observes = observes || added[i].Observe != nil
	}
	a, ofApp := g.app, g == &g.app.routes
	a.mu.Lock()
	a.amending, a.amendsAll, a.observed = a.amending || amends, a.amendsAll || amendsAll, a.observed || ofApp && observes
	plain := g.fallback.Load() == nil && g.prefix == "" && g.host == ""
	if plain { // the group cannot have a fallback
		g.features = g.features.With(added, false, observes)
	}
	a.mu.Unlock()
	if !plain {
		g.changeFallback(func(s *fallbackSource) { s.features = s.features.With(added, ofApp, observes) }, false)
	}
}

// mustPrecedeRoutes panics if a route of the group, or of a group made from it, is already registered and not critical,
// because the named call does not apply to that route.
func (g *Group) mustPrecedeRoutes(call string) {
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	for _, route := range g.app.registered {
		of := route.group
		for of != nil && of != g {
			of = of.outer
		}
		if of == g && !route.shared.Critical {
			panic(fmt.Sprintf("dunlin: %s must come before the routes that it applies to: %s %s is registered at %s (%s called at %s)",
				call, route.methods, route.shared.Pattern, route.at, call, callerPlace()))
		}
	}
}

// plainLayers returns the layers for middleware that is not standard middleware.
func plainLayers(middleware []Middleware) []layer {
	layers := make([]layer, len(middleware))
	for i, m := range middleware {
		layers[i].wrap = m
	}
	return layers
}

// withMore returns a new slice with the layers of have and more.
func withMore(have, more []layer) []layer {
	return append(have[:len(have):len(have)], more...)
}

// Group returns a group whose routes are below prefix ("/api/v1"). They have the middleware of this group and, inside
// of it, the given middleware.
func (g *Group) Group(prefix string, middleware ...Middleware) *Group {
	if prefix != "" && (prefix[0] != '/' || strings.HasSuffix(prefix, "/")) {
		panic(fmt.Sprintf("dunlin: Group: prefix %q must begin with a slash and not end with one; \"\" is none (called at %s)", prefix, callerPlace()))
	}
	sub := g.derive()
	sub.prefix += prefix
	sub.Use(middleware...)
	return sub
}

// Host returns a group whose routes only match requests to the given host: "api.example.com", or a pattern such as
// "{tenant}.example.com", whose parameters are read like those of the path. The port of the request is ignored. Routes
// for a host take precedence over routes for any host, and exact hosts over patterns.
func (g *Group) Host(pattern string, middleware ...Middleware) *Group {
	if g.host != "" {
		panic(fmt.Sprintf("dunlin: Host(%q): the group is for host %q already (called at %s)", pattern, g.host, callerPlace()))
	}
	sub := g.derive()
	sub.host = pattern
	sub.Use(middleware...)
	return sub
}

// Version returns a group whose routes only match requests that accept a vendor media type of the given version: "v2"
// for Accept: application/vnd.acme.v2+json. If no version fits, the answer is 406 and lists the versions of the path.
// Every answer of such a path has Vary: Accept.
func (g *Group) Version(version string, middleware ...Middleware) *Group {
	sub := g.derive()
	sub.version = version
	sub.Use(middleware...)
	return sub
}

// App returns the app of the group; an App returns itself.
func (g *Group) App() *App { return g.app }

// derive copies the group. Middleware added to the copy does not affect the original.
func (g *Group) derive() *Group {
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	sub := *g
	sub.outer = g
	sub.fallback = &groupFallback{outer: g.fallback}
	return &sub
}

// Get registers act for GET requests and, if no route is registered for HEAD, for HEAD requests. The body of an answer
// to HEAD is not sent.
func (g *Group) Get(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodGet, pattern, act, middleware)
}

// Head registers act for HEAD requests.
func (g *Group) Head(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodHead, pattern, act, middleware)
}

// Post registers act for POST requests.
func (g *Group) Post(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodPost, pattern, act, middleware)
}

// Put registers act for PUT requests.
func (g *Group) Put(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodPut, pattern, act, middleware)
}

// Patch registers act for PATCH requests.
func (g *Group) Patch(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodPatch, pattern, act, middleware)
}

// Delete registers act for DELETE requests.
func (g *Group) Delete(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodDelete, pattern, act, middleware)
}

// Options registers act for OPTIONS requests. Without such a route they are answered with 204 and Allow, inside the
// middleware of another route of the path: the route for the method that a CORS preflight names, or else the route for
// the first method in Allow.
func (g *Group) Options(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodOptions, pattern, act, middleware)
}

// Handle registers act for a comma-separated set of methods ("GET,HEAD"), or for any method ("*").
//
// Like the other methods that register routes, Handle panics for a malformed pattern, for a nil action, and for a route
// that conflicts with another route. The message has the file and line of the calls.
func (g *Group) Handle(methods, pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(methods, pattern, act, middleware)
}

// HandleStd is Handle for a standard handler, see [FromStd]. If neither middleware nor a feature with Wrap wraps the route, the
// handler runs on the goroutine of the action.
func (g *Group) HandleStd(methods, pattern string, h http.Handler, middleware ...Middleware) *Route {
	if h == nil {
		panic(fmt.Sprintf("dunlin: HandleStd(%q): nil handler (called at %s)", pattern, callerPlace()))
	}
	return g.add(router.Route[*endpoint]{Methods: methods, Pattern: pattern}, stdAction(h), true, middleware)
}

// Mount registers a standard handler for every method and every path at and below prefix. The handler sees the whole path;
// wrap it in http.StripPrefix to remove the prefix. A handler mounted at "/" also gets CONNECT for a host and port, as a
// forward proxy does. The router does not treat an escaped slash as a slash, but r.URL.Path contains it as a slash. So check
// access in the handler or in its middleware: a route for a path below prefix does not protect all spellings of that path.
// A handler that must get paths with empty, «.» or «..» segments needs this setting:
//
//	app.Mount("/legacy", h).UncleanPaths(dunlin.UncleanPathsServe)
func (g *Group) Mount(prefix string, h http.Handler, middleware ...Middleware) *Route {
	if h == nil {
		panic(fmt.Sprintf("dunlin: Mount(%q): nil handler (called at %s)", prefix, callerPlace()))
	}
	return g.add(router.Route[*endpoint]{Methods: "*", Pattern: prefix, Prefix: true}, stdAction(h), true, middleware)
}

func (g *Group) register(methods, pattern string, act Action, middleware []Middleware) *Route {
	return g.add(router.Route[*endpoint]{Methods: methods, Pattern: pattern}, act, false, middleware)
}

// UncleanPaths sets the policy for a path with empty, «.» or «..» segments whose clean path leads to this route, in
// place of Config.UncleanPaths. Call it before the first request of the route. It panics for UncleanPathsServe on a route
// that is not a mount.
func (r *Route) UncleanPaths(policy UncleanPaths) *Route {
	if policy > UncleanPathsServe || policy == UncleanPathsServe && !r.mount {
		panic(fmt.Sprintf("dunlin: UncleanPaths(%d) of route %s: it must be UncleanPathsRedirect or UncleanPathsRefuse, or UncleanPathsServe for a mounted handler (called at %s)",
			policy, r.shared.Pattern, callerPlace()))
	}
	r.dirty = policy
	return r
}

// add registers a route and panics if it cannot. std reports that act is a result of stdAction.
func (g *Group) add(reg router.Route[*endpoint], act Action, std bool, middleware []Middleware) *Route {
	at := caller.Here()
	reg.Where = at
	full := g.prefix + reg.Pattern
	if act == nil {
		panic(fmt.Sprintf("dunlin: %s %s: nil action (registered at %s)", reg.Methods, full, at))
	}
	if g.prefix != "" && reg.Pattern != "" && reg.Pattern[0] != '/' {
		panic(fmt.Sprintf("dunlin: %s: pattern %q in group %q must begin with a slash (registered at %s)", reg.Methods, reg.Pattern, g.prefix, at))
	}
	for i, m := range middleware {
		if m == nil {
			panic(fmt.Sprintf("dunlin: %s %s: middleware %d is nil (registered at %s)", reg.Methods, full, i, at))
		}
	}
	a := g.app
	a.mu.Lock()
	inherited, features := g.middleware, g.features
	a.mu.Unlock()
	// Middleware may call the app, so no lock is held.
	layers := layersOf(features, withMore(inherited, plainLayers(middleware)))
	if len(layers) > 0 && !std {
		act = contained(act, true)
	}
	wrapped := a.chain(act, layers, at, true, std)
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.version != "" {
		a.careful.Store(true)
	}
	route := &Route{app: a, index: len(a.registered), group: g, at: at}
	if route.alone = std; len(layers) > 0 {
		route.alone = layers[0].std != nil
	}
	route.action, route.shared.Pattern, route.shared.Timeout = wrapped, full, g.timeout
	if route.around = answerOptions; len(layers) > 0 {
		route.around = wrapped
	}
	route.features = features
	route.methods, route.host, route.version = reg.Methods, g.host, g.version
	route.shared.Counts.Init()
	route.shared.MaxBody = g.maxBody
	reg.Pattern, reg.Host, reg.Version = full, g.host, g.version
	reg.Name = routeKey(route.index)
	reg.Value = &route.endpoint
	route.mount, route.dirty = reg.Prefix, a.config.UncleanPaths
	if route.dirty == UncleanPathsServe && !route.mount {
		route.dirty = UncleanPathsRedirect
	}
	route.guard(g.limits...)
	if err := a.router.Add(reg); err != nil {
		panic("dunlin: " + err.Error())
	}
	a.registered = append(a.registered, route)
	a.log.Debug("route registered", "methods", reg.Methods, "pattern", full, "host", g.host, "version", g.version, "place", at)
	return route
}

// callerPlace returns file:line of the nearest caller outside this package and outside the packages of this module that
// register routes for their callers.
func callerPlace() string { return caller.Here().String() }
