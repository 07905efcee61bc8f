package router

import "sync/atomic"

// This file has the tree of nodes. A node represents the first segments of patterns, and patterns with a common prefix share nodes.
// Each edge represents the next segment, after one slash:
//
//	/users, /users/{id:int}, /users/{name}/posts, /uploads/{path...}
//
//	root ┬ "users" (end) ┬ {id:int} (end)
//	     │               └ {name} ── "posts" (end)
//	     └ "uploads" ── catch-all
//
// A lookup tries the edges of a node in the order of precedence: static, constrained, named (a parameter without a constraint),
// catch-all. If the rest of the path does not match below an edge, the lookup returns to the node and tries the next edge.
//
// Backtracking is bounded. Each node is reached by exactly one sequence of edges, each edge consumes exactly one segment of the path,
// and a segment is parsed in only one way. Therefore a lookup enters each node at most once, always at the same position in the path.
// It reads a segment of the path at most once for each node at the segment's depth, and the rest of the path at most once for each
// catch-all. The time is linear in the length of the path, with a factor that depends only on the patterns. The depth of the recursion
// is at most the number of segments of the longest pattern.
//
// Nodes may change while lookups run. A lookup reads a leaf as it was before or after a registration, and never an intermediate state.
// Only registrations write, and they hold the router's lock.
//
// In a large router, lookups mostly wait for memory. Therefore a node is one cache line, with the information that most lookups need:
// how to match the edge to the node, the only child of each kind, and the methods of its leaf.
type node struct {
	// For a static segment: the results of scanSegment for the segment, and the length of the segment.
	first, hash uint64
	size        uint16
	// For a segment with parameters: how to check its value, and the number of its parameters.
	kind   valueKind
	params uint8

	endMethods atomic.Uint32 // methods that end.first answers, among the methods with the lowest 32 bits; see setEnd
	segment    *segment      // segment of the edge to this node, nil for a root

	static atomic.Pointer[node]  // child of the static edge
	param  atomic.Pointer[node]  // child of the edge with parameters
	edges  atomic.Pointer[edges] // all edges; used instead of static and param if the node has more edges
	end    atomic.Pointer[leaf]  // routes of the patterns that end here, and prefix routes for this path
}

// newNode returns a node for the edge of a segment. The segment must not be a catch-all.
func newNode(seg *segment) *node {
	n := &node{segment: seg}
	if seg.rank == static {
		_, n.first, n.hash = scanSegment(seg.shape, 0)
		n.size = uint16(len(seg.shape)) // at most maxPattern
		return n
	}
	n.kind, n.params = seg.kind(), uint8(seg.params())
	return n
}

// is reports whether the edge to n is the static segment text[start:end]. first and hash are the results of scanSegment for this
// segment. They identify the first 16 bytes, so that the text of most segments need not be compared.
func (n *node) is(text string, start, end int, first, hash uint64) bool {
	return n.hash == hash && n.first == first && int(n.size) == end-start &&
		(end-start <= scanExact || n.segment.shape[scanExact:] == text[start+scanExact:end])
}

// setEnd sets the leaf of the patterns that end at n. The leaf and endMethods cannot be stored in one step, so endMethods is 0 while
// the leaf changes. It remains 0 for a prefix route, because a lookup must then also set the result of Match.Rest.
func (n *node) setEnd(l *leaf) {
	n.endMethods.Store(0)
	n.end.Store(l)
	if !l.first.isPrefix {
		n.endMethods.Store(uint32(l.first.methods))
	}
}

// endAnswers reports whether the first binding of l answers the method. It does not read the memory of l. The caller has loaded l from
// n.end. If n.end is still l after endMethods was read, endMethods belongs to l.
func (n *node) endAnswers(l *leaf, method methodSet) bool {
	return n.endMethods.Load()&uint32(method) != 0 && n.end.Load() == l
}

// next returns the child node for a segment. It adds a node if none exists.
func (n *node) next(seg *segment) *node {
	if c := n.existing(seg); c != nil {
		return c
	}
	c, only := newNode(seg), &n.param
	if seg.rank == static {
		only = &n.static
	}
	switch e := n.edges.Load(); {
	case e == nil && only.Load() == nil:
		only.Store(c)
	case e != nil && seg.rank == static && e.hasRoom():
		e.addStatic(c)
	default:
		e = n.editEdges()
		e.add(c)
		n.edges.Store(e)
	}
	return c
}

// editEdges returns a copy of the edges that the caller may change and store.
func (n *node) editEdges() *edges {
	e := new(edges)
	if old := n.edges.Load(); old != nil {
		*e = *old
		return e
	}
	if c := n.static.Load(); c != nil {
		e.add(c)
	}
	if c := n.param.Load(); c != nil {
		e.add(c)
	}
	return e
}

// existing returns the child node for a segment, or nil.
func (n *node) existing(seg *segment) *node {
	if seg.rank == static {
		return n.existingStatic(seg.shape)
	}
	for _, c := range n.allParams() {
		if c.segment.shape == seg.shape {
			return c
		}
	}
	return nil
}

// existingStatic returns the child node for a static segment with the given text, or nil.
func (n *node) existingStatic(text string) *node {
	end, first, hash := scanSegment(text, 0)
	if end != len(text) {
		return nil
	}
	if e := n.edges.Load(); e != nil {
		if len(e.slots) == 0 {
			return nil
		}
		return e.findStatic(text, 0, end, first, hash)
	}
	if c := n.static.Load(); c != nil && c.is(text, 0, end, first, hash) {
		return c
	}
	return nil
}

// allParams returns the child nodes of the edges with parameters in order of precedence.
func (n *node) allParams() []*node {
	if e := n.edges.Load(); e != nil {
		return e.params
	}
	if c := n.param.Load(); c != nil {
		return []*node{c}
	}
	return nil
}

// rest returns the leaf of the catch-alls and prefix routes of n, or nil.
func (n *node) rest() *leaf {
	if e := n.edges.Load(); e != nil {
		return e.rest
	}
	return nil
}

// eachStatic calls visit for the child node of each static edge, until visit returns false.
func (n *node) eachStatic(visit func(*node) bool) bool {
	if e := n.edges.Load(); e != nil {
		return e.eachStatic(visit)
	}
	c := n.static.Load()
	return c == nil || visit(c)
}

// walkLeaves calls visit for the leaves at n and below n, until visit returns false.
func (n *node) walkLeaves(visit func(*leaf) bool) bool {
	if l := n.end.Load(); l != nil && !visit(l) {
		return false
	}
	if !n.eachStatic(func(c *node) bool { return c.walkLeaves(visit) }) {
		return false
	}
	for _, c := range n.allParams() {
		if !c.walkLeaves(visit) {
			return false
		}
	}
	rest := n.rest()
	return rest == nil || visit(rest)
}
