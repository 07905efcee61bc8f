package router

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// A route is the part of a registration that the tree of nodes uses.
type route struct {
	entry      any       // *entry[T] of the router
	value      any       // Route.Value
	methods    methodSet // anyMethod for "*"
	version    string
	prefix     bool
	host, path *pattern // host is nil for routes for any host
	names      []string // names of the parameters; the parameters of the host come first
	hostParams int
}

// collectNames sets names to the names of the parameters of host and path.
func (r *route) collectNames() error {
	r.names = r.path.names
	if r.host == nil {
		return nil
	}
	r.hostParams = len(r.host.names)
	for _, name := range r.path.names {
		if slices.Contains(r.host.names, name) {
			return fmt.Errorf("parameter %q occurs in host and path", name)
		}
	}
	r.names = slices.Concat(r.host.names, r.path.names)
	if len(r.names) > maxParams {
		return fmt.Errorf("more than %d parameters in host and path", maxParams)
	}
	return nil
}

// A table has all routes of a router in trees, one for each host. The zero value is empty.
type table struct {
	methods   atomic.Pointer[methodTable]
	versioned atomic.Bool
	anyHost   node
	hosts     atomic.Pointer[hosts] // nil if no route has a host
}

// insert adds a route. It returns the route with which r conflicts, or an error if r cannot be added.
func (t *table) insert(r *route, o *overlaps) (conflict *route, err error) {
	in := &insertion{route: r, methods: t.methods.Load(), overlaps: o}
	if r.host == nil {
		in.add(&t.anyHost)
		return in.other, nil
	}
	h := t.hosts.Load()
	if h == nil {
		h = new(hosts)
	}
	err = h.insert(in)
	if err == nil && in.other == nil {
		t.hosts.Store(h)
	}
	return in.other, err
}

// find returns the binding for a request, or nil and the reason why none was found.
func (t *table) find(method, host, path, accept string, s *state) (*binding, Outcome) {
	if path == "" || path[0] != '/' || uint64(len(path)) > math.MaxUint32 {
		return nil, OutcomeNotFound
	}
	bit := standardBit(method)
	if bit == 0 {
		bit = t.methods.Load().bit(method)
	}
	// The fields are set one by one. The compiler would build a literal in other memory and copy it in wider words. This
	// delays the processor, which cannot forward narrow stores to wider loads. The delay is a quarter of the time of a short
	// lookup.
	var w walk
	w.path, w.accept, w.method, w.s = path, accept, bit, s
	if h := t.hosts.Load(); h != nil {
		if b := h.find(host, &w); b != nil {
			return b, OutcomeFound
		}
	}
	if b := w.find(&t.anyHost, 0, 0); b != nil {
		return b, OutcomeFound
	}
	if s.missed == 0 {
		return nil, OutcomeNotFound
	}
	s.methods = t.methods.Load()
	return nil, s.outcome()
}
