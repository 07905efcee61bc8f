package router

import "slices"

// A leaf has the routes of one node in the tree, which differ in methods or version. It is immutable. It is allocated in the 128-byte
// size class, which is aligned to cache lines, so that first is in one line.
type leaf struct {
	first     binding   // copy of bindings[0] if there are no versions; most leaves have no other binding
	bindings  []binding // in order of precedence
	versioned bool      // whether any of the routes has a version
	methods   methodSet // methods of all routes
	allow     string    // value of Allow for methods
	versions  []string  // versions of all routes, in order
}

// A binding is a route with the methods that it answers in its leaf.
type binding struct {
	methods  methodSet // all bits are set for "*"
	value    any       // value of the route
	route    *route
	atPrefix bool // this leaf is the prefix route's own path, where exact routes take precedence
	isPrefix bool // the route is a prefix route
	implied  bool // HEAD of a route for GET
}

// level orders bindings: exact before prefix routes, and named methods before implied HEAD before any method.
func (b *binding) level() int {
	level := 0
	switch {
	case b.route.methods == anyMethod:
		level = 2
	case b.implied:
		level = 1
	}
	if b.atPrefix {
		level += 3
	}
	return level
}

// with returns a copy of l with one more route. l may be nil.
func (l *leaf) with(r *route, names *methodTable, prefix bool) *leaf {
	next := new(leaf)
	if l != nil {
		*next = *l
	}
	b := binding{methods: r.methods, value: r.value, route: r, atPrefix: prefix, isPrefix: r.prefix}
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
