package dunlin

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
	"github.com/dunlinhttp/dunlin/router"
)

// RouteInfo describes a registered route.
type RouteInfo struct {
	Methods string // "GET", "GET,HEAD", or "*" for any
	Pattern string // with the prefix of its group
	Prefix  bool   // the route also matches every path below the pattern
	Host    string // "" for any
	Version string // "" for any
	Name    string // as given to Route.Name
	// Constraints are the constraints of parameters, in order: "id: int". An entry says so if package regexp checks its
	// constraint, because the router's own automaton for the expression would be too large.
	Constraints []string
	Place       string // file:line of the registration

	Params []router.Param // the parameters of host and path, in order

	Timeout   time.Duration // 0 for none
	MaxBody   int64         // in bytes
	Limited   bool          // Limit applies to the route: 503
	LimitedBy bool          // LimitBy applies to the route: 429
	Critical  bool          // never refused because of an overload
	About     any           // the argument of ext.Describe
}

// String returns the route as a line of a listing.
func (i RouteInfo) String() string {
	s := i.Methods + " " + i.Host + i.Pattern
	if i.Prefix {
		s += " and below"
	}
	if i.Version != "" {
		s += " (version " + i.Version + ")"
	}
	if i.Name != "" {
		s += " «" + i.Name + "»"
	}
	if len(i.Constraints) > 0 {
		s += " [" + strings.Join(i.Constraints, ", ") + "]"
	}
	return s + " at " + i.Place
}

// Routes lists the routes in the order of their registration.
func (a *App) Routes() []RouteInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []RouteInfo
	for i, info := range a.router.Routes() {
		list = append(list, a.registered[i].info(info))
	}
	return list
}

// info adds the settings of the route to the router's description.
func (r *Route) info(in router.Info) RouteInfo {
	i := RouteInfo{
		Methods: in.Methods, Pattern: in.Pattern, Prefix: in.Prefix, Host: in.Host, Version: in.Version,
		Name: r.name, Constraints: in.Constraints, Place: in.Place, Params: in.Params,
		Timeout: r.shared.Timeout, MaxBody: r.shared.MaxBody, Critical: r.shared.Critical, About: r.about,
	}
	if i.MaxBody == 0 {
		i.MaxBody = int64(r.app.config.Limits.MaxBody)
	}
	for _, l := range r.limits {
		if l.reason == admission.KeyLimit {
			i.LimitedBy = true
		} else {
			i.Limited = true
		}
	}
	return i
}

// Info describes the route. It allocates, so do not call it for each request.
func (r *Route) Info() RouteInfo {
	r.app.mu.Lock()
	defer r.app.mu.Unlock()
	return r.info(r.app.router.Info(r.index))
}

// URL builds the path of the named route from values for its parameters, in the order of the pattern. Parameters of the
// host come first. For a route with a host the result begins with "//" and the host. A value that the route does not
// match is an error, so a request for the result of URL always matches the route.
func (a *App) URL(name string, values ...any) (string, error) {
	a.mu.Lock()
	route := a.named[name]
	a.mu.Unlock()
	if route == nil {
		return "", fmt.Errorf("dunlin: URL: no route is named %q", name)
	}
	url, err := a.router.URL(routeKey(route.index), values...)
	if err != nil {
		return "", fmt.Errorf("dunlin: URL of route %q: %w", name, err)
	}
	return url, nil
}

// Explain reports step by step why a target matches a route or does not match one. The target is a path, or a host and a
// path ("//api.example.com/users").
func (a *App) Explain(method, target string) string {
	host := ""
	if rest, hasHost := strings.CutPrefix(target, "//"); hasHost {
		host, target, _ = strings.Cut(rest, "/")
		target = "/" + target
	}
	target, _, _ = strings.Cut(target, "?")
	path, err := router.Canonical(nil, target)
	if err != nil {
		return fmt.Sprintf("%s %s: %v: answered with 400", method, target, err)
	}
	if to, ok := a.rewrites.Path(string(path), new(rewrite.Match)); ok {
		return fmt.Sprintf("%s is rewritten to %s\n", path, to) + a.router.Explain(method, host, to, "")
	}
	return a.router.Explain(method, host, string(path), "")
}

// Rewrite replaces the path of requests before they are routed, without a redirect. A path that matches the pattern from
// becomes the path to, in which {name} is replaced by a parameter of from, and {name...} by a parameter with slashes:
//
//	app.Rewrite("/v1/{path...}", "/api/{path...}")
//
// The new path is routed, with the middleware of its route. The query does not change. Path, and the URL that standard
// handlers see, have the new path. SentPath has the original path. A redirect that adds or removes a slash at the end of
// the path uses the original path if that path, with the changed slash, also leads to the route. A request is rewritten
// once. Rewrite panics if the rule is invalid.
func (a *App) Rewrite(from, to string) {
	if err := a.rewrites.Add(from, to, callerPlace()); err != nil {
		panic(fmt.Sprintf("dunlin: Rewrite(%q, %q): %v (called at %s)", from, to, err, callerPlace()))
	}
	a.careful.Store(true)
}

// Constraint defines a constraint for the parameters of routes registered after it ({name:constraint}), by a regular
// expression that must match the whole value. It panics if the name is taken or the expression is malformed.
func (a *App) Constraint(name, expr string) {
	if err := cmp.Or(a.router.Constraint(name, expr), a.areas.Constraint(name, expr)); err != nil {
		panic(fmt.Sprintf("dunlin: Constraint(%q): %v (called at %s)", name, err, callerPlace()))
	}
}

// ConstraintFunc is Constraint with a function of the unescaped value. The function must not keep the value. It must be
// safe for concurrent use, and may block as actions may. A panic is answered with 500.
func (a *App) ConstraintFunc(name string, accept func(value string) bool) {
	if accept == nil {
		panic(fmt.Sprintf("dunlin: ConstraintFunc(%q): nil function (called at %s)", name, callerPlace()))
	}
	a.careful.Store(true)
	if err := cmp.Or(a.router.ConstraintFunc(name, accept), a.areas.ConstraintFunc(name, accept)); err != nil {
		panic(fmt.Sprintf("dunlin: ConstraintFunc(%q): %v (called at %s)", name, err, callerPlace()))
	}
}

// Describe implements ext.Describe.
func (*inside) Describe(r *Route, about any) {
	r.app.mu.Lock()
	defer r.app.mu.Unlock()
	r.about = about
}
