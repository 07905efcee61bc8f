package router

// An insertion adds one route. It checks for all conflicts before it changes the tree, so a refused route has no effect.
type insertion struct {
	route    *route
	methods  *methodTable
	overlaps *overlaps
	other    *route // the first conflicting route that was found
}

// add adds the route to the tree with the given root. If the route conflicts with another route, add only sets in.other.
func (in *insertion) add(root *node) {
	segments := in.route.path.segments
	if in.route.prefix && in.route.path.text == "/" {
		segments = nil
	}
	if in.check(root, segments); in.other != nil {
		return
	}
	n := root
	for i := range segments {
		if segments[i].rank == catchAll {
			in.addRest(n)
			return
		}
		n = n.next(&segments[i])
	}
	if in.route.prefix {
		in.addRest(n)
	}
	if in.route.prefix && n == root {
		return // a prefix route at the root matches every path
	}
	n.setEnd(n.end.Load().with(in.route, in.methods, in.route.prefix))
}

func (in *insertion) addRest(n *node) {
	e := n.editEdges()
	e.rest = e.rest.with(in.route, in.methods, false)
	n.edges.Store(e)
}

// kind returns the valueKind of a segment with parameters.
func (seg *segment) kind() valueKind {
	switch {
	case seg.rank == named:
		return anyValue
	case len(seg.parts) == 1 && seg.parts[0].constraint.kind != anyValue:
		return seg.parts[0].constraint.kind
	}
	return otherValue
}

// params returns the number of parameters of a segment.
func (seg *segment) params() int {
	n := 0
	for _, p := range seg.parts {
		if p.name != "" {
			n++
		}
	}
	return n
}

// check searches for a conflict along the nodes of the route's pattern.
func (in *insertion) check(n *node, segments []segment) {
	for i := range segments {
		seg := &segments[i]
		switch seg.rank {
		case catchAll:
			in.checkLeaf(n.rest(), false)
			return
		case constrained:
			if in.checkSiblings(n, seg); in.other != nil {
				return
			}
		}
		if n = n.existing(seg); n == nil {
			return
		}
	}
	if in.route.prefix {
		in.checkLeaf(n.rest(), false)
	}
	in.checkLeaf(n.end.Load(), in.route.prefix)
}

// checkLeaf searches a leaf for a route that has the version of the new route and at least one of its methods. prefix reports
// whether the new route is a prefix route and the leaf is for the path of the prefix itself.
func (in *insertion) checkLeaf(l *leaf, prefix bool) {
	if l == nil || in.other != nil {
		return
	}
	r := in.route
	for _, b := range l.bindings {
		if !b.implied && b.atPrefix == prefix && b.route.methods&r.methods != 0 && b.route.version == r.version {
			in.other = b.route
			return
		}
	}
}

// checkSiblings searches for conflicts with routes below other constrained edges of the node n.
func (in *insertion) checkSiblings(n *node, seg *segment) {
	for _, sibling := range n.allParams() {
		if sibling.segment.rank != constrained || sibling.segment.shape == seg.shape {
			continue
		}
		if _, ok := in.overlaps.find(seg, sibling.segment); !ok {
			continue
		}
		sibling.walkLeaves(func(l *leaf) bool {
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

// answers returns the methods that the route answers. They include HEAD if they include GET.
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
