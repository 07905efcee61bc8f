package router

import (
	"fmt"
	"math"
	"slices"
)

// route is the part of a registration that the tree works with.
type route struct {
	id         int
	text       string // "GET example.com/users/{id}"
	place      string
	methods    methodSet // anyMethod alone for "*"
	version    string
	prefix     bool
	host, path *pattern // host is nil for any host
	names      []string // of the parameters, the host's first
	hostParams int
}

func (r *route) String() string { return r.text }

func (r *route) collectParams() error {
	if r.host != nil {
		for _, p := range r.host.params {
			r.names = append(r.names, p.name)
		}
	}
	r.hostParams = len(r.names)
	for _, p := range r.path.params {
		if slices.Contains(r.names[:r.hostParams], p.name) {
			return fmt.Errorf("parameter %q occurs in host and path", p.name)
		}
		r.names = append(r.names, p.name)
	}
	return nil
}

// table is all there is to find a route: a tree for every host. It is immutable like its trees.
type table struct {
	methods   methodTable
	versioned bool
	anyHost   *node
	hosts     *hosts // nil if no route has a host
}

// insert adds a route. On error t must not be used further.
func (t *table) insert(r *route, o *overlaps) error {
	in := &insertion{route: r, methods: &t.methods, overlaps: o}
	t.versioned = t.versioned || r.version != ""
	var err error
	if r.host == nil {
		t.anyHost, err = in.add(t.anyHost)
	} else {
		t.hosts, err = t.hosts.insert(in)
	}
	return err
}

// find returns the route for a request, or nil and what is wrong.
func (t *table) find(method, host, path, accept string, s *state) (*route, Outcome) {
	if path == "" || path[0] != '/' || len(path) > math.MaxUint32 {
		return nil, NotFound
	}
	w := walk{path: path, accept: accept, method: t.methods.bit(method), s: s}
	if t.hosts != nil {
		if r := t.hosts.find(host, &w); r != nil {
			return r, Found
		}
	}
	if t.anyHost != nil {
		if r := w.find(t.anyHost, 0, 0); r != nil {
			return r, Found
		}
	}
	if s.missed == 0 {
		return nil, NotFound
	}
	s.methods = &t.methods
	return nil, s.outcome()
}
