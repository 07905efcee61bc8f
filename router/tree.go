package router

import (
	"math/bits"
	"sync/atomic"
)

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
// Nodes change while lookups run, by single atomic stores: a lookup sees a leaf before or after a
// registration, never in between. Only registration, under the router's lock, writes.
type node struct {
	first   uint64                      // the first 8 bytes of text, little endian, zeros behind
	text    string                      // the static segment of the edge into this node
	only    atomic.Pointer[node]        // behind the static edge, while there is one
	statics atomic.Pointer[staticTable] // of the static edges, once there are more
	dynamic atomic.Pointer[dynamic]
	named   atomic.Pointer[node]
	end     atomic.Pointer[leaf] // of the patterns that end here, and of the prefix routes for this path
}

// dynamic holds the rarer edges of a node. It is immutable; the nodes it leads to are not.
type dynamic struct {
	constrained []edge  // ordered by shape
	one         [1]edge // the array behind constrained when there is one, next to what is read with it
	rest        *leaf   // of catch-alls and prefix routes, which match whatever follows the slash
}

// edge is a constrained segment and what follows it.
type edge struct {
	segment *segment
	check   func(string) bool // of a segment that is one parameter with a built-in constraint, else nil
	params  int
	next    *node
}

// staticTable finds a static edge by its text. It is an open-addressing hash table, at most half full.
type staticTable struct {
	shift uint // 64 - log2(len(slots))
	used  int
	slots []atomic.Pointer[node]
}

// is reports whether the node's text is the segment text[start:end], whose first 8 bytes are first.
func (n *node) is(text string, start, end int, first uint64) bool {
	return n.first == first && len(n.text) == end-start && (end-start <= 8 || n.text[8:] == text[start+8:end])
}

// find returns the node for the segment text[start:end], whose scan gave first and hash, or nil.
func (t *staticTable) find(text string, start, end int, first, hash uint64) *node {
	for i := hash >> (t.shift & 63); ; i++ {
		n := t.slots[i&uint64(len(t.slots)-1)].Load()
		if n == nil {
			return nil
		}
		// As in is, with which the compiler would not inline the search.
		if n.first == first && len(n.text) == end-start && (end-start <= 8 || n.text[8:] == text[start+8:end]) {
			return n
		}
	}
}

// child returns the node behind the static segment text, which is added if need be.
func (n *node) child(text string) *node {
	if c := n.existing(text); c != nil {
		return c
	}
	_, first, hash := scanSegment(text, 0)
	c := &node{first: first, text: text}
	only, t := n.only.Load(), n.statics.Load()
	switch {
	case t != nil && 2*(t.used+1) <= len(t.slots):
		t.add(c, hash)
	case t != nil:
		grown := newStaticTable(2 * len(t.slots))
		for i := range t.slots {
			if old := t.slots[i].Load(); old != nil {
				grown.adopt(old)
			}
		}
		grown.add(c, hash)
		n.statics.Store(grown)
	case only != nil:
		t = newStaticTable(4)
		t.adopt(only)
		t.add(c, hash)
		n.statics.Store(t)
	default:
		n.only.Store(c)
	}
	return c
}

// newStaticTable makes a table with size slots, a power of two.
func newStaticTable(size int) *staticTable {
	return &staticTable{
		shift: 64 - uint(bits.TrailingZeros(uint(size))),
		slots: make([]atomic.Pointer[node], size),
	}
}

// add puts a node into a free slot, of which there is at least one.
func (t *staticTable) add(n *node, hash uint64) {
	i := hash >> t.shift
	for ; t.slots[i&uint64(len(t.slots)-1)].Load() != nil; i++ {
	}
	t.slots[i&uint64(len(t.slots)-1)].Store(n)
	t.used++
}

// adopt adds a node that is in the tree already.
func (t *staticTable) adopt(n *node) {
	_, _, hash := scanSegment(n.text, 0)
	t.add(n, hash)
}

// existing returns the node behind the static segment text, or nil.
func (n *node) existing(text string) *node {
	end, first, hash := scanSegment(text, 0)
	if end != len(text) {
		return nil
	}
	if t := n.statics.Load(); t != nil {
		return t.find(text, 0, end, first, hash)
	}
	if c := n.only.Load(); c != nil && c.is(text, 0, end, first) {
		return c
	}
	return nil
}

// eachStatic calls visit with the nodes behind the static edges, until it returns false.
func (n *node) eachStatic(visit func(*node) bool) bool {
	t := n.statics.Load()
	if t == nil {
		only := n.only.Load()
		return only == nil || visit(only)
	}
	for i := range t.slots {
		if c := t.slots[i].Load(); c != nil && !visit(c) {
			return false
		}
	}
	return true
}

// walkLeaves visits the leaves at and below n, until visit returns false.
func (n *node) walkLeaves(visit func(*leaf) bool) bool {
	if n == nil {
		return true
	}
	if l := n.end.Load(); l != nil && !visit(l) {
		return false
	}
	if !n.eachStatic(func(c *node) bool { return c.walkLeaves(visit) }) {
		return false
	}
	if !n.named.Load().walkLeaves(visit) {
		return false
	}
	d := n.dynamic.Load()
	if d == nil {
		return true
	}
	for _, e := range d.constrained {
		if !e.next.walkLeaves(visit) {
			return false
		}
	}
	return d.rest == nil || visit(d.rest)
}
