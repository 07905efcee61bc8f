package router

import "sync/atomic"

// The tree. A node stands for the segments of a pattern up to some point; patterns that begin alike
// share nodes. The edges are the next segments, after one slash each:
//
//	/users, /users/{id:int}, /users/{name}/posts, /uploads/{path...}
//
//	root ┬ "users" (end) ┬ {id:int} (end)
//	     │               └ {name} ── "posts" (end)
//	     └ "uploads" ── catch-all
//
// A lookup tries the edges of a node in the order of precedence: static, constrained, named, catch-all;
// and when the rest of the path does not match behind one, it comes back and tries the next.
//
// The surprising part is that this cannot explode. A node is reached by one sequence of edges only,
// and each edge takes exactly one segment of the path, which is read in one way. So a lookup enters a
// node at most once, and always at the same place in the path, however often it comes back. A segment
// of the path is read at most once for each node at its depth, the rest behind it at most once for
// each catch-all: the time is at most linear in the path, with a factor that depends on the patterns
// alone, and the recursion is no deeper than the longest pattern has segments.
//
// Nodes change while lookups run: a lookup sees a leaf before or after a registration, never in between.
// Only registration, under the router's lock, writes.
//
// In a large router a lookup mostly waits for memory, and the more so the more of it all lookups read. So a
// node has one cache line, with all there is to know of most: how to match the edge into it, where the only
// edges of their kind lead, and which methods are answered at its end.
type node struct {
	// Of a static segment: its text as scanSegment reads it, and its length.
	first, hash uint64
	size        uint16
	// Of a segment with parameters: how to check its value, and the number of parameters.
	kind   valueKind
	params uint8

	endMethods atomic.Uint32 // the methods, of the first 32, that end.first answers; see setEnd
	segment    *segment      // of the edge into this node, nil at a root

	static atomic.Pointer[node]  // behind the static edge
	param  atomic.Pointer[node]  // behind the edge with parameters
	edges  atomic.Pointer[edges] // all of them, once these two do not suffice; they are not used any more then
	end    atomic.Pointer[leaf]  // of the patterns that end here, and of the prefix routes for this path
}

// newNode returns a node for the edge of a segment, which is not a catch-all.
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

// is reports whether the edge into n is the static segment text[start:end], whose scan gave first and
// hash. These two stand for the first 16 bytes, so the text of most segments need not be read.
func (n *node) is(text string, start, end int, first, hash uint64) bool {
	return n.hash == hash && n.first == first && int(n.size) == end-start &&
		(end-start <= scanExact || n.segment.shape[scanExact:] == text[start+scanExact:end])
}

// setEnd makes l the leaf of the patterns that end at n. Leaf and methods cannot be stored at once, so there
// are no methods while the leaf changes.
func (n *node) setEnd(l *leaf) {
	n.endMethods.Store(0)
	n.end.Store(l)
	if !l.first.below {
		n.endMethods.Store(uint32(l.first.methods))
	}
}

// endAnswers reports whether l, which was loaded from n.end, is known to answer the method by its first
// binding, without touching its memory. As n.end is still l after the methods were read, they were l's.
func (n *node) endAnswers(l *leaf, method methodSet) bool {
	return n.endMethods.Load()&uint32(method) != 0 && n.end.Load() == l
}

// next returns the node behind a segment, which is added if need be.
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

// editEdges returns a copy of the edges, to be changed and stored.
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

// existing returns the node behind a segment, or nil.
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

// existingStatic returns the node behind the static segment text, or nil.
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

// allParams returns the nodes behind the edges with parameters, in order of precedence.
func (n *node) allParams() []*node {
	if e := n.edges.Load(); e != nil {
		return e.params
	}
	if c := n.param.Load(); c != nil {
		return []*node{c}
	}
	return nil
}

// rest returns the leaf of the catch-alls and prefix routes, or nil.
func (n *node) rest() *leaf {
	if e := n.edges.Load(); e != nil {
		return e.rest
	}
	return nil
}

// eachStatic calls visit with the nodes behind the static edges, until it returns false.
func (n *node) eachStatic(visit func(*node) bool) bool {
	if e := n.edges.Load(); e != nil {
		return e.eachStatic(visit)
	}
	c := n.static.Load()
	return c == nil || visit(c)
}

// walkLeaves visits the leaves at and below n, until visit returns false.
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
