package router

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// A Route is a registration: the conditions under which it matches, and the value to return.
type Route[T any] struct {
	// Methods is a comma-separated list such as "GET,HEAD", or "*" for any method. It may contain methods that are not
	// standard. A route for GET also answers HEAD, unless a route for HEAD has the same pattern.
	Methods string
	// Host is empty for any host. Otherwise it is a host or a host pattern: "api.example.com", "{tenant}.example.com".
	Host string
	// Version is empty, or is the version that a vendor media type in Accept must name: "v2" for
	// application/vnd.acme.v2+json.
	Version string
	// Pattern is the path pattern, see the package documentation.
	Pattern string
	// Prefix makes the route match Pattern itself and everything below it.
	Prefix bool
	// Name is the name of the route for URL, or empty. No other route of the router may have the same name.
	Name string
	// Place is the source position of the registration ("main.go:12"), for error messages and listings.
	Place string
	// Where returns the source position of the registration. It is called only if Place is empty and the position is
	// needed.
	Where fmt.Stringer
	// Value is stored with the route.
	Value T
}

// Router finds the route for a request. The zero value is ready for use. Lookups and registrations may run at the same time
// in any number of goroutines. A lookup takes no lock, and uses every route whose Add returned before the lookup began. A
// Router must not be copied.
type Router[T any] struct {
	table table

	mu          sync.RWMutex // locked by registrations, and read-locked by methods that requests do not call
	constraints constraints
	overlaps    overlaps
	entries     []*entry[T] // in the order of registration
	names       map[string]*entry[T]
}

// An entry is a registered route and values that are derived from it.
type entry[T any] struct {
	Route[T]
	route route
}

// Constraint defines a constraint with a name from a regular expression, which must match the whole value. Patterns that
// are added later can use it: {id:name}.
func (r *Router[T]) Constraint(name, expr string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := compileConstraint(name, expr)
	if err == nil {
		err = r.constraints.define(name, c)
	}
	if err != nil {
		return fmt.Errorf("router: define constraint %q: %w", name, err)
	}
	return nil
}

// ConstraintFunc defines a constraint with a name from a function. accept gets the unescaped value. The string is borrowed:
// it is valid only during the call. accept must be safe for concurrent use.
func (r *Router[T]) ConstraintFunc(name string, accept func(value string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.New("nil function")
	if accept != nil {
		err = r.constraints.define(name, &constraint{text: name, custom: accept})
	}
	if err != nil {
		return fmt.Errorf("router: define constraint %q: %w", name, err)
	}
	return nil
}

// Add registers a route. For an invalid pattern it returns an error that wraps a *PatternError. If some requests would
// match both this route and an earlier route with equal precedence, it returns a *ConflictError. After an error the router
// is unchanged.
func (r *Router[T]) Add(reg Route[T]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.add(reg); err != nil {
		return fmt.Errorf("router: add %s%s: %w", reg.String(), at(reg.position()), err)
	}
	return nil
}

func (r *Router[T]) add(reg Route[T]) error {
	if e := r.names[reg.Name]; e != nil {
		return fmt.Errorf("the name %q is used by %s%s", reg.Name, e, at(e.position()))
	}
	e := &entry[T]{Route: reg}
	e.route.entry, e.route.value = e, reg.Value
	methods, err := r.compile(&reg, &e.route)
	if err != nil {
		return err
	}
	// The methods must be stored before a lookup can find the route.
	before := r.table.methods.Swap(methods)
	conflict, err := r.table.insert(&e.route, &r.overlaps)
	if conflict != nil {
		other := conflict.entry.(*entry[T])
		err = &ConflictError{
			Route: e.String(), RoutePlace: e.position(),
			Other: other.String(), OtherPlace: other.position(),
			Example: r.overlaps.example(&e.route, conflict),
		}
	}
	if err != nil {
		r.table.methods.Store(before)
		return err
	}
	r.entries = append(r.entries, e)
	if reg.Version != "" {
		r.table.versioned.Store(true)
	}
	if reg.Name != "" {
		if r.names == nil {
			r.names = make(map[string]*entry[T])
		}
		r.names[reg.Name] = e
	}
	return nil
}

// compile parses a registration into c. It returns the table of all methods, including the new methods.
func (r *Router[T]) compile(reg *Route[T], c *route) (*methodTable, error) {
	c.version, c.prefix = reg.Version, reg.Prefix
	var methods *methodTable
	var err error
	if c.methods, methods, err = r.table.methods.Load().parse(reg.Methods); err != nil {
		return nil, err
	}
	if reg.Version != "" && !isVersion(reg.Version) {
		return nil, fmt.Errorf("version %q is not of the form v1, v2beta, v2024-01-31", reg.Version)
	}
	text := reg.Pattern
	if reg.Prefix && text != "/" {
		text = strings.TrimSuffix(text, "/")
	}
	if c.path, err = parsePath(text, r.constraints.resolve); err != nil {
		return nil, err
	}
	if reg.Prefix && c.path.segments[len(c.path.segments)-1].rank == catchAll {
		return nil, errors.New("a prefix route cannot have a catch-all: it matches every path at and below its prefix")
	}
	if reg.Host != "" {
		if err = checkHostPattern(reg.Host); err != nil {
			return nil, err
		}
		if c.host, err = parseHost(reg.Host, r.constraints.resolve); err != nil {
			return nil, err
		}
	}
	return methods, c.collectNames()
}

// Versioned reports whether a route has a version. If none has, lookups do not need the Accept header.
func (r *Router[T]) Versioned() bool { return r.table.versioned.Load() }

// Lookup finds the route for a request and stores the result in m. It overwrites the content of m. path must be canonical
// (see Canonical). The port of host is ignored. The strings may be borrowed: neither the router nor m keeps them. Lookup
// chooses among the versions of a route as for a request without an Accept header.
//
// Lookup allocates only if a route has more parameters than m has stored before. Its time is at most proportional to the
// length of the path times the number of segments of the patterns that compete for it. It tries each segment of a pattern
// at most once.
func (r *Router[T]) Lookup(method, host, path string, m *Match[T]) Outcome {
	return r.LookupAccept(method, host, path, "", m)
}

// LookupAccept is Lookup for a request with an Accept header, which selects among the versions of a route. The values of
// several Accept fields must be joined with commas. accept may be borrowed.
func (r *Router[T]) LookupAccept(method, host, path, accept string, m *Match[T]) Outcome {
	m.state.begin()
	var outcome Outcome
	m.found, outcome = r.table.find(method, host, path, accept, &m.state)
	return outcome
}

// String returns the route in the form that is used in messages: "GET,HEAD example.com/users/{id} (v2)".
func (r *Route[T]) String() string {
	text := r.Methods + " " + r.Host + r.Pattern
	if r.Version != "" {
		text += " (" + r.Version + ")"
	}
	return text
}

func (r *Route[T]) position() string {
	if r.Place == "" && r.Where != nil {
		return r.Where.String()
	}
	return r.Place
}

func at(position string) string {
	if position == "" {
		return ""
	}
	return " at " + position
}
