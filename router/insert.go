package router

import (
	"slices"
	"strings"
)

// insertion adds one route. It first checks the whole way for conflicts, then changes the tree, so a
// refused route leaves no trace.
type insertion struct {
	route    *route
	methods  *methodTable
	overlaps *overlaps
	other    *route // the first conflicting route that was found
}

// add adds the route below root and reports whether there was no conflict.
func (in *insertion) add(root *node) bool {
	segments := in.route.path.segments
	if in.route.prefix && in.route.path.text == "/" {
		segments = nil
	}
	if in.check(root, segments); in.other != nil {
		return false
	}
	n := root
	for i := range segments {
		if segments[i].rank == catchAll {
			in.addRest(n)
			return true
		}
		n = n.next(&segments[i])
	}
	if in.route.prefix {
		in.addRest(n)
	}
	if in.route.prefix && n == root {
		return true // everything below the root is everything
	}
	n.end.Store(n.end.Load().with(in.route, in.methods, in.route.prefix))
	return true
}

func (in *insertion) addRest(n *node) {
	d := n.editDynamic()
	d.rest = d.rest.with(in.route, in.methods, false)
	n.dynamic.Store(d)
}

// editDynamic returns a copy of the dynamic edges, to be changed and stored.
func (n *node) editDynamic() *dynamic {
	d := new(dynamic)
	if old := n.dynamic.Load(); old != nil {
		*d = *old
		if len(d.constrained) == 1 {
			d.constrained = d.one[:]
		} else {
			d.one[0] = edge{}
		}
	}
	return d
}

// next returns the node behind a segment, adding it if need be.
func (n *node) next(seg *segment) *node {
	if seg.rank == static {
		return n.child(seg.shape)
	}
	if seg.rank == named {
		n.named.CompareAndSwap(nil, new(node))
		return n.named.Load()
	}
	d := n.editDynamic()
	i, found := d.edge(seg)
	if !found {
		own := *seg // without keeping the other segments of the pattern
		e := edge{segment: &own, params: seg.params(), next: new(node)}
		if len(seg.parts) == 1 {
			e.check = seg.parts[0].constraint.check
		}
		if len(d.constrained) == 0 {
			d.one[0] = e
			d.constrained = d.one[:]
		} else {
			d.constrained = slices.Insert(slices.Clone(d.constrained), i, e)
		}
		n.dynamic.Store(d)
	}
	return d.constrained[i].next
}

// edge finds the edge for a constrained segment, or the place where it belongs.
func (d *dynamic) edge(seg *segment) (int, bool) {
	return slices.BinarySearchFunc(d.constrained, seg.shape, func(e edge, shape string) int {
		return strings.Compare(e.segment.shape, shape)
	})
}

// params counts the parameters of a segment.
func (seg *segment) params() int {
	n := 0
	for _, p := range seg.parts {
		if p.name != "" {
			n++
		}
	}
	return n
}

// check looks for a conflict on the way that the route will take.
func (in *insertion) check(n *node, segments []segment) {
	for i := range segments {
		seg := &segments[i]
		d := n.dynamic.Load()
		switch {
		case seg.rank == static:
			n = n.existing(seg.shape)
		case seg.rank == named:
			n = n.named.Load()
		case d == nil:
			return
		case seg.rank == catchAll:
			in.checkLeaf(d.rest, false)
			return
		default:
			in.checkSiblings(d.constrained, seg)
			j, found := d.edge(seg)
			if !found || in.other != nil {
				return
			}
			n = d.constrained[j].next
		}
		if n == nil {
			return
		}
	}
	if d := n.dynamic.Load(); d != nil && in.route.prefix {
		in.checkLeaf(d.rest, false)
	}
	in.checkLeaf(n.end.Load(), in.route.prefix)
}

// checkLeaf looks for a route of the leaf that answers the same method and version.
func (in *insertion) checkLeaf(l *leaf, prefix bool) {
	if l == nil || in.other != nil {
		return
	}
	r := in.route
	for _, b := range l.bindings {
		if !b.implied && b.prefix == prefix && b.route.methods&r.methods != 0 && b.route.version == r.version {
			in.other = b.route
			return
		}
	}
}

// checkSiblings looks for conflicts with the routes behind the other constrained segments of a node.
func (in *insertion) checkSiblings(siblings []edge, seg *segment) {
	for i := range siblings {
		sibling := &siblings[i]
		if sibling.segment.shape == seg.shape {
			continue
		}
		if _, ok := in.overlaps.find(seg, sibling.segment); !ok {
			continue
		}
		sibling.next.walkLeaves(func(l *leaf) bool {
			for _, b := range l.bindings {
				if b.methods&in.answers() == 0 {
					continue
				}
				if _, ok := in.overlaps.path(in.route, b.route); ok {
					in.other = b.route
					return false
				}
			}
			return true
		})
	}
}

// answers returns the methods the route answers, HEAD for GET included.
func (in *insertion) answers() methodSet {
	switch m := in.route.methods; {
	case m == anyMethod:
		return ^methodSet(0)
	case m&methodGet != 0:
		return m | methodHead
	default:
		return m
	}
}
