package router

import "slices"

// leaf holds the routes of one place in the tree, which differ in methods or version. It is immutable. It
// has at most 128 bytes, so that it begins with a cache line, which has all of first.
type leaf struct {
	first     binding   // bindings[0] if there are no versions to choose from, here because most leaves have no other
	bindings  []binding // in order of precedence
	versioned bool      // any of the routes has a version
	methods   methodSet // of all routes
	allow     string    // the Allow value for them
	versions  []string  // of all routes, in order
}

// binding is a route with the methods it answers in its leaf.
type binding struct {
	methods methodSet // all bits for "*"
	value   any       // the user's value for the route
	route   *route
	prefix  bool // a prefix route at its own path, which gives way to exact routes
	below   bool // a prefix route, here or below its path
	implied bool // the HEAD of a route for GET
}

// level orders bindings: exact before prefix routes, named methods before implied HEAD before any.
func (b *binding) level() int {
	level := 0
	switch {
	case b.route.methods == anyMethod:
		level = 2
	case b.implied:
		level = 1
	}
	if b.prefix {
		level += 3
	}
	return level
}

// with returns a copy of the leaf, which may be nil, with the route added.
func (l *leaf) with(r *route, names *methodTable, prefix bool) *leaf {
	next := new(leaf)
	if l != nil {
		*next = *l
	}
	b := binding{methods: r.methods, value: r.value, route: r, prefix: prefix, below: r.prefix}
	if b.methods == anyMethod {
		b.methods = ^methodSet(0)
	}
	next.bindings = append(slices.Clip(next.bindings), b)
	if r.methods&methodGet != 0 && r.methods&methodHead == 0 {
		b.methods, b.implied = methodHead, true
		next.bindings = append(next.bindings, b)
	}
	slices.SortStableFunc(next.bindings, func(a, b binding) int {
		if d := a.level() - b.level(); d != 0 {
			return d
		}
		return compareVersions(b.route.version, a.route.version) // newest first
	})
	next.methods |= r.methods
	next.allow = names.allow(next.methods)
	next.versioned = next.versioned || r.version != ""
	next.first = binding{}
	if !next.versioned {
		next.first = next.bindings[0]
	}
	if i, found := slices.BinarySearchFunc(next.versions, r.version, compareVersions); !found && r.version != "" {
		next.versions = slices.Insert(slices.Clone(next.versions), i, r.version)
	}
	return next
}
