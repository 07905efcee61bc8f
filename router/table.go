package router

import (
	"fmt"
	"slices"
)

// route is the part of a registration that the tree works with.
type route struct {
	id         int
	text       string // "GET example.com/users/{id}"
	place      string
	methods    methodSet
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

// ConflictError says that a route would be ambiguous with one registered before.
type ConflictError struct {
	Route, Other           string // "GET /users/{id:int}"
	RoutePlace, OtherPlace string
	Example                string // a path, or host and path, that both match at equal precedence
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict with %s%s: both match %s with equal precedence", e.Other, at(e.OtherPlace), e.Example)
}

type table struct {
	methods   methodTable
	versioned bool
	routes    []*route // most specific first
}

func (t *table) insert(r *route) error {
	for _, other := range t.routes {
		if r.methods&other.methods != 0 && r.version == other.version && r.prefix == other.prefix && compare(r, other) == 0 {
			return &ConflictError{Route: r.text, RoutePlace: r.place, Other: other.text, OtherPlace: other.place, Example: r.path.text}
		}
	}
	routes := append(slices.Clone(t.routes), r)
	slices.SortStableFunc(routes, compare)
	t.routes = routes
	t.versioned = t.versioned || r.version != ""
	return nil
}

// compare orders routes by precedence.
func compare(a, b *route) int {
	if c := comparePatterns(a.host, b.host); c != 0 {
		return c
	}
	if c := comparePatterns(a.path, b.path); c != 0 {
		return c
	}
	if a.prefix != b.prefix {
		if a.prefix {
			return 1
		}
		return -1
	}
	return int(a.methods>>63) - int(b.methods>>63)
}

func comparePatterns(a, b *pattern) int {
	if a == nil || b == nil {
		if a == b {
			return 0
		} else if a == nil {
			return 1
		}
		return -1
	}
	for i := 0; i < len(a.segments) && i < len(b.segments); i++ {
		x, y := a.segments[i], b.segments[i]
		if x.rank != y.rank {
			return int(x.rank) - int(y.rank)
		}
		if x.shape != y.shape {
			if x.shape < y.shape {
				return -1
			}
			return 1
		}
	}
	return len(b.segments) - len(a.segments)
}

func (t *table) find(method, host, path, accept string, s *state) Outcome {
	s.reset()
	s.table = t
	if path == "" || path[0] != '/' {
		return NotFound
	}
	bit := t.methods.bit(method)
	for _, r := range t.routes {
		if !t.matches(r, host, path, s) {
			continue
		}
		if r.methods&(bit|anyMethod) != 0 {
			s.route = r
			return Found
		}
		if bit == methodHead && r.methods&methodGet != 0 {
			s.route, s.head = r, true
			return Found
		}
		s.allowed |= r.methods
	}
	if s.allowed != 0 {
		return MethodNotAllowed
	}
	return NotFound
}

func (t *table) matches(r *route, host, path string, s *state) bool {
	k := 0
	if r.host != nil {
		rest := host
		for i := range r.host.segments {
			end := indexFrom(host, len(host)-len(rest), '.')
			seg := &r.host.segments[i]
			start := len(host) - len(rest)
			if (end < len(host)) != (i+1 < len(r.host.segments)) {
				return false
			}
			if seg.rank == static {
				if host[start:end] != seg.shape {
					return false
				}
			} else if !seg.match(host, start, end, k, s) {
				return false
			} else {
				k += (len(seg.parts) + 1) / 2
			}
			rest = host[min(end+1, len(host)):]
		}
	}
	pos := 1
	for i := range r.path.segments {
		seg := &r.path.segments[i]
		if pos > len(path) {
			return false
		}
		end := indexFrom(path, pos, '/')
		switch {
		case seg.rank == catchAll:
			if isDirty(path[pos:]) {
				return false
			}
			s.setSpan(k, pos, len(path))
			return true
		case seg.rank == static:
			if path[pos:end] != seg.shape {
				return r.prefix && i == 0 && seg.shape == "" && !isDirty(path[pos:])
			}
		case !seg.match(path, pos, end, k, s):
			return false
		default:
			for _, p := range seg.parts {
				if p.name != "" {
					k++
				}
			}
		}
		pos = end + 1
	}
	if r.prefix {
		s.rest = uint32(pos - 1)
		return pos > len(path) || !isDirty(path[pos:])
	}
	return pos > len(path)
}

// indexFrom returns the index of c in s from start on, or len(s).
func indexFrom(s string, start int, c byte) int {
	for start < len(s) && s[start] != c {
		start++
	}
	return start
}
