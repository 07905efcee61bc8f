package router

import "slices"

// A leaf has the routes that end at one node of the tree. They differ in methods or version. A leaf is immutable. It is allocated in
// the size class of 128 bytes, which is aligned to cache lines, so that the field first is in one cache line.
type leaf struct {
	first     binding   // copy of bindings[0] if no route has a version; most leaves have no other binding
	bindings  []binding // in order of precedence
	versioned bool      // whether one of the routes has a version
	methods   methodSet // methods of all routes of the leaf
	allow     string    // value of the Allow header for methods
	versions  []string  // versions of all routes, in order
}

// A binding is a route and the methods that the route answers at this leaf.
type binding struct {
	methods  methodSet // all bits are set for "*"
	value    any       // value of the route
	route    *route
	atPrefix bool // this leaf is the path of the prefix route itself; here, routes that are not prefix routes take precedence
	isPrefix bool // the route is a prefix route
	implied  bool // the binding is for HEAD, and the route is for GET
}

// level returns the precedence of a binding; the smallest level is first. Routes for the exact path precede prefix routes. Among
// these, routes that name the method precede routes for GET that answer HEAD, and those precede routes for any method.
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

// with returns a copy of l with one more route. l may be nil. prefix reports whether the leaf is the path of a prefix route itself.
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
