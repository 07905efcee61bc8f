package router

import (
	"slices"
	"strings"
)

// step is an edge on the way of a pattern through the tree: static text, or a dynamic segment.
type step struct {
	text    string
	segment *segment
}

// steps joins the static segments of a pattern, with their slashes, to runs of text.
func (p *pattern) steps() []step {
	var steps []step
	text := ""
	for i := range p.segments {
		text += "/"
		if seg := &p.segments[i]; seg.rank == static {
			text += seg.shape
		} else {
			steps = append(steps, step{text: text}, step{segment: seg})
			text = ""
		}
	}
	if text != "" {
		steps = append(steps, step{text: text})
	}
	return steps
}

// insertion adds one route to a tree by copying what changes.
type insertion struct {
	route    *route
	methods  *methodTable
	overlaps *overlaps
	prefix   bool // adding the end of a prefix route
	err      error
}

var restSegment = segment{rank: catchAll}

// add returns the tree with the route added; root may be nil.
func (in *insertion) add(root *node) (*node, error) {
	r := in.route
	steps := r.path.steps()
	if r.prefix {
		// A prefix route ends twice: at its own path, behind the exact routes for it, and below the slash.
		if r.path.text != "/" {
			in.prefix = true
			root = in.into(root, steps)
			in.prefix = false
			steps = joinText(append(steps, step{text: "/"}))
		}
		steps = append(steps, step{segment: &restSegment})
	}
	root = in.into(root, steps)
	return root, in.err
}

// joinText joins the last two steps if both are text.
func joinText(steps []step) []step {
	n := len(steps)
	if n > 1 && steps[n-2].segment == nil {
		steps[n-2].text += steps[n-1].text
		steps = steps[:n-1]
	}
	return steps
}

// into returns a copy of n with the steps added behind it.
func (in *insertion) into(n *node, steps []step) *node {
	n = n.clone()
	switch {
	case len(steps) == 0:
		n.end = in.leaf(n.end, in.prefix)
	case steps[0].segment == nil:
		in.static(n, steps[0].text, steps[1:])
	default:
		in.dynamic(n, steps[0].segment, steps[1:])
	}
	return n
}

func (n *node) clone() *node {
	if n == nil {
		return new(node)
	}
	c := *n
	return &c
}

// static adds static text, then the steps, below n, which is a copy already.
func (in *insertion) static(n *node, text string, steps []step) {
	n.addText(text, func(end *node) *node { return in.into(end, steps) })
}

// addText replaces the node that text leads to from n, adding nodes on the way as needed. n must be a copy.
func (n *node) addText(text string, replace func(*node) *node) {
	i := strings.IndexByte(n.first, text[0])
	if i < 0 {
		for i = 0; i < len(n.first) && n.first[i] < text[0]; i++ {
		}
		n.first = n.first[:i] + text[:1] + n.first[i:]
		n.children = slices.Insert(slices.Clip(slices.Clone(n.children)), i, replace(&node{text: text}))
		return
	}
	child := n.children[i].clone()
	common := commonPrefix(child.text, text)
	if common < len(child.text) {
		lower := child
		child = &node{text: lower.text[:common], first: lower.text[common : common+1], children: []*node{lower}}
		lower.text = lower.text[common:]
	}
	if common == len(text) {
		child = replace(child)
	} else {
		child.addText(text[common:], replace)
	}
	n.children = slices.Clone(n.children)
	n.children[i] = child
}

func commonPrefix(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

// dynamic adds a dynamic segment, then the steps, below n, which is a copy already.
func (in *insertion) dynamic(n *node, seg *segment, steps []step) {
	d := new(dynamic)
	if n.dynamic != nil {
		*d = *n.dynamic
	}
	n.dynamic = d
	switch seg.rank {
	case catchAll:
		d.rest = in.leaf(d.rest, false)
	case named:
		d.named = in.into(d.named, steps)
	case constrained:
		in.checkSiblings(d.constrained, seg)
		i, found := slices.BinarySearchFunc(d.constrained, seg.shape, func(e edge, shape string) int {
			return strings.Compare(e.segment.shape, shape)
		})
		if !found {
			d.constrained = slices.Insert(slices.Clip(slices.Clone(d.constrained)), i, edge{segment: seg, params: seg.params()})
		} else {
			d.constrained = slices.Clone(d.constrained)
		}
		d.constrained[i].next = in.into(d.constrained[i].next, steps)
	}
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
