package router

import "slices"

// leaf holds the routes of one place in the tree, which differ in methods or version. It is immutable.
type leaf struct {
	bindings  []binding // in order of precedence
	versioned bool      // any of the routes has a version
	methods   methodSet // of all routes
	allow     string    // the Allow value for them
	versions  []string  // of all routes, in order
}

// binding is a route with the methods it answers in its leaf.
type binding struct {
	methods methodSet // all bits for "*"
	route   *route
	prefix  bool // a prefix route at its own path, which gives way to exact routes
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

// leaf returns a copy of l with the route added.
func (in *insertion) leaf(l *leaf, prefix bool) *leaf {
	next := new(leaf)
	if l != nil {
		*next = *l
	}
	r := in.route
	for _, b := range next.bindings {
		if !b.implied && b.prefix == prefix && b.route.methods&r.methods != 0 && b.route.version == r.version {
			in.conflict(b.route)
			return next
		}
	}
	methods := r.methods
	if methods == anyMethod {
		methods = ^methodSet(0)
	}
	next.bindings = append(slices.Clip(next.bindings), binding{methods: methods, route: r, prefix: prefix})
	if r.methods&methodGet != 0 && r.methods&methodHead == 0 {
		next.bindings = append(next.bindings, binding{methods: methodHead, route: r, prefix: prefix, implied: true})
	}
	slices.SortStableFunc(next.bindings, func(a, b binding) int {
		if d := a.level() - b.level(); d != 0 {
			return d
		}
		return compareVersions(b.route.version, a.route.version) // newest first
	})
	next.methods |= r.methods
	next.allow = in.methods.allow(next.methods)
	next.versioned = next.versioned || r.version != ""
	if i, found := slices.BinarySearchFunc(next.versions, r.version, compareVersions); !found && r.version != "" {
		next.versions = slices.Insert(slices.Clip(next.versions), i, r.version)
	}
	return next
}
