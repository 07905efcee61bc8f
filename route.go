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

// A Group registers routes under a common prefix, host, version and
// middleware. The App is the group without any of them.
type Group struct {
	app           *App
	prefix        string
	host, version string
	timeout       time.Duration
	limits        []*limit
	maxBody       int64 // 0: that of the config
	middleware    []Middleware
	fallback      *groupFallback
	result        *caller.Result // of the last call that returned a group for its settings
}

// A Route is one registration, for settings that are its own.
type Route struct {
	endpoint
	app   *App
	index int // in App.registered
	name  string
	about any // see Describe

	methods, host, version string
}

// endpoint is what the router stores for a route: what a request needs.
type endpoint struct {
	action Action         // with its middleware
	shared exchange.Route // what adapters see of it
	around Action         // action without its limits; answers OPTIONS instead if Request.options is set
	limits []*limit       // on how many are served at once
	alone  bool           // the action is a standard handler, with nothing around it
	dirty  DirtyPaths     // of paths that lead here when they are clean
	mount  bool           // of a standard handler, with all that is below its path
	clear  bool           // served in clear text, too, whatever Config.HSTS says
	room   exchange.Room  // for what its streams hold back
	below  *groupFallback // of a group, for paths below its prefix
}

// Name names the route for App.URL. It panics when the name is taken.
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

// routeKey is the name under which the router knows a route; those that people
// give may come later.
func routeKey(index int) string { return "#" + strconv.Itoa(index) }

// Use adds middleware to the routes that are registered after it, in this group
// and in groups made from it after it. Of several, the first sees the request
// first. That of a route also wraps what answers OPTIONS for it, see Options; that of the
// app, and of a group with one of them, also wraps NotFound and MethodNotAllowed.
func (g *Group) Use(middleware ...Middleware) {
	for i, m := range middleware {
		if m == nil {
			panic(fmt.Sprintf("dunlin: Use: middleware %d is nil (called at %s)", i, callerPlace()))
		}
	}
	if g.fallback.Load() != nil {
		g.changeFallback(func(s *fallbackSource) { s.middleware = withMore(s.middleware, middleware) })
		return
	}
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	g.middleware = withMore(g.middleware, middleware)
}

// withMore returns a slice of its own with the middleware of both.
func withMore(have, more []Middleware) []Middleware {
	return append(have[:len(have):len(have)], more...)
}

// Group returns a group whose routes stand below prefix ("/api/v1"), with the
// middleware of this group and, after it, the given one.
func (g *Group) Group(prefix string, middleware ...Middleware) *Group {
	if prefix != "" && (prefix[0] != '/' || strings.HasSuffix(prefix, "/")) {
		panic(fmt.Sprintf("dunlin: Group: prefix %q must begin with a slash and not end with one; \"\" is none (called at %s)", prefix, callerPlace()))
	}
	sub := g.derive()
	sub.prefix += prefix
	sub.Use(middleware...)
	return sub
}

// Host returns a group whose routes are only for requests to the given host:
// "api.example.com", or a pattern such as "{tenant}.example.com", whose
// parameters are read like those of the path. The port does not count. Routes
// for a host go before routes for any host, exact hosts before patterns.
func (g *Group) Host(pattern string, middleware ...Middleware) *Group {
	if g.host != "" {
		panic(fmt.Sprintf("dunlin: Host(%q): the group is for host %q already (called at %s)", pattern, g.host, callerPlace()))
	}
	sub := g.derive()
	sub.host = pattern
	sub.Use(middleware...)
	return sub
}

// Version returns a group whose routes are only for requests that accept a vendor media
// type of the given version: "v2" for Accept: application/vnd.acme.v2+json. When no
// version fits, the answer is 406 and lists those that exist. Every answer of such a path
// says Vary: Accept.
func (g *Group) Version(version string, middleware ...Middleware) *Group {
	sub := g.derive()
	sub.version = version
	sub.Use(middleware...)
	return sub
}

// App returns the app that the group belongs to; that of an App is itself.
func (g *Group) App() *App { return g.app }

// derive copies the group; what is used in the copy does not reach the original.
func (g *Group) derive() *Group {
	g.result.Use()
	g.app.mu.Lock()
	defer g.app.mu.Unlock()
	sub := *g
	sub.fallback = &groupFallback{outer: g.fallback}
	return &sub
}

// set is derive for a call that does nothing but return the copy.
func (g *Group) set(call string) *Group {
	sub := g.derive()
	sub.result = g.app.results.New(call)
	return sub
}

// Get registers act for GET requests, and for HEAD where no route is registered
// for it: the body is then dropped.
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

// Options registers act for OPTIONS requests. Without it they are answered with
// 204 and Allow, behind the middleware of the path's other routes: of the one that a
// preflight of CORS asks about, or else of the first that Allow names.
func (g *Group) Options(pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(http.MethodOptions, pattern, act, middleware)
}

// Handle registers act for a comma-separated set of methods ("GET,HEAD"), or
// for any method ("*").
//
// Like all registration it panics on a programmer's error, naming the places:
// a malformed pattern, a nil action, a route that conflicts with another.
func (g *Group) Handle(methods, pattern string, act Action, middleware ...Middleware) *Route {
	return g.register(methods, pattern, act, middleware)
}

// Mount registers a standard handler for every method and every path at and
// below prefix. The handler sees the whole path; wrap it in http.StripPrefix to cut
// the prefix off. A handler mounted at "/" also gets CONNECT for a host and port, as
// forward proxies do. An escaped slash is none for the router, and one in r.URL.Path:
// guard the handler itself, and not paths below it by other routes. One that is to
// see paths with empty, «.» or «..» segments says so:
//
//	app.Mount("/legacy", h).DirtyPaths(dunlin.ServeDirty)
func (g *Group) Mount(prefix string, h http.Handler, middleware ...Middleware) *Route {
	if h == nil {
		panic(fmt.Sprintf("dunlin: Mount(%q): nil handler (called at %s)", prefix, callerPlace()))
	}
	return g.add(router.Route[*endpoint]{Methods: "*", Pattern: prefix, Prefix: true}, FromStd(h), middleware)
}

func (g *Group) register(methods, pattern string, act Action, middleware []Middleware) *Route {
	return g.add(router.Route[*endpoint]{Methods: methods, Pattern: pattern}, act, middleware)
}

// DirtyPaths says what becomes of a path with empty, «.» or «..» segments that leads to
// this route when it is clean, in place of Config.DirtyPaths. It belongs before
// the route's first request. It panics for ServeDirty on a route that Mount has not made.
func (r *Route) DirtyPaths(policy DirtyPaths) *Route {
	if policy > ServeDirty || policy == ServeDirty && !r.mount {
		panic(fmt.Sprintf("dunlin: DirtyPaths(%d) of route %s: it must be RedirectDirty or RefuseDirty, or ServeDirty for a mounted handler (called at %s)",
			policy, r.shared.Pattern, callerPlace()))
	}
	r.dirty = policy
	return r
}

// add registers a route and panics when it cannot.
func (g *Group) add(reg router.Route[*endpoint], act Action, middleware []Middleware) *Route {
	at := caller.Here()
	g.result.Use()
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
	inherited := g.middleware
	a.mu.Unlock()
	// Middleware is code of others and may ask the app something: no lock is held.
	if len(middleware)+len(inherited) > 0 {
		act = contained(act, true)
	}
	wrapped := a.chain(act, withMore(inherited, middleware), at, true)
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.version != "" {
		a.careful.Store(true)
	}
	route := &Route{app: a, index: len(a.registered)}
	route.alone = isStd(wrapped)
	route.action, route.shared.Pattern, route.shared.Timeout = wrapped, full, g.timeout
	if route.around = answerOptions; len(middleware)+len(inherited) > 0 {
		route.around = wrapped
	}
	route.methods, route.host, route.version = reg.Methods, g.host, g.version
	route.shared.Counts.Init()
	route.shared.MaxBody = g.maxBody
	reg.Pattern, reg.Host, reg.Version = full, g.host, g.version
	reg.Name = routeKey(route.index)
	reg.Value = &route.endpoint
	route.mount, route.dirty = reg.Prefix, a.config.DirtyPaths
	if route.dirty == ServeDirty && !route.mount {
		route.dirty = RedirectDirty
	}
	route.guard(g.limits...)
	if err := a.router.Add(reg); err != nil {
		panic("dunlin: " + err.Error())
	}
	a.registered = append(a.registered, route)
	a.log.Debug("route registered", "methods", reg.Methods, "pattern", full, "host", g.host, "version", g.version, "place", at)
	return route
}

// callerPlace returns file:line of the nearest caller outside this package and those that register routes for others.
func callerPlace() string { return caller.Here().String() }
