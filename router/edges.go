package router

import (
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
)

// edges are the edges of a node that has several edges of one kind, or a catch-all. Lookups use edges while routes are added, so
// the only permitted change is to fill a free slot.
type edges struct {
	// slots is a hash table of the static edges with open addressing. It is at most a quarter full: a collision costs more than the
	// comparison, because the processor has predicted that the first slot matches. slots is empty if the node has no static edges.
	slots  []atomic.Pointer[node]
	shift  uint8   // 64 - log2(len(slots))
	used   uint32  // number of used slots, for registration
	params []*node // in order of precedence: constrained by shape, then named
	rest   *leaf   // leaf of the catch-alls and prefix routes, which match the rest of the path
}

const minSlots = 4

// findStatic returns the child node for the segment text[start:end], or nil. first and hash are the results of scanSegment for this
// segment. slots must not be empty.
func (e *edges) findStatic(text string, start, end int, first, hash uint64) *node {
	for i := hash >> (e.shift & 63); ; i++ {
		n := e.slots[i&uint64(len(e.slots)-1)].Load()
		// This is the condition of node.is. It is repeated here because the compiler would not inline a call.
		if n == nil || n.hash == hash && n.first == first && int(n.size) == end-start &&
			(end-start <= scanExact || n.segment.shape[scanExact:] == text[start+scanExact:end]) {
			return n
		}
	}
}

// eachStatic calls visit for the child node of each static edge, until visit returns false.
func (e *edges) eachStatic(visit func(*node) bool) bool {
	for i := range e.slots {
		if c := e.slots[i].Load(); c != nil && !visit(c) {
			return false
		}
	}
	return true
}

// add adds an edge to e, a copy that no lookup uses yet. It does not change parts that e shares with the original.
func (e *edges) add(n *node) {
	if n.segment.rank == static {
		if !e.hasRoom() {
			e.grow()
		}
		e.addStatic(n)
		return
	}
	i, _ := slices.BinarySearchFunc(e.params, n.segment, compareParams)
	e.params = slices.Insert(slices.Clip(e.params), i, n)
}

// compareParams orders the nodes of segments with parameters by precedence.
func compareParams(n *node, seg *segment) int {
	if n.segment.rank != seg.rank {
		return int(n.segment.rank) - int(seg.rank)
	}
	return strings.Compare(n.segment.shape, seg.shape)
}

// hasRoom reports whether the table may be filled by one more edge.
func (e *edges) hasRoom() bool { return 4*(int(e.used)+1) <= len(e.slots) }

// grow moves the static edges to a table of twice the size.
func (e *edges) grow() {
	size := max(minSlots, 2*len(e.slots))
	grown := edges{
		slots: make([]atomic.Pointer[node], size),
		shift: 64 - uint8(bits.TrailingZeros(uint(size))),
	}
	e.eachStatic(func(n *node) bool {
		grown.addStatic(n)
		return true
	})
	e.slots, e.shift, e.used = grown.slots, grown.shift, grown.used
}

// addStatic stores a node in a free slot. The table must have a free slot.
func (e *edges) addStatic(n *node) {
	i := n.hash >> e.shift
	for ; e.slots[i&uint64(len(e.slots)-1)].Load() != nil; i++ {
	}
	e.slots[i&uint64(len(e.slots)-1)].Store(n)
	e.used++
}
