package router

import "strings"

// walk is one lookup on its way through the tree. It lives on the stack.
type walk struct {
	path   string
	accept string
	method methodSet // one bit
	s      *state
}

// find returns the route that path[pos:] leads to from n, or nil. k parameters have been recorded so far.
func (w *walk) find(n *node, pos, k int) *route {
	path := w.path
	for pos < len(path) {
		d := n.dynamic
		if child := n.child(path[pos]); child != nil {
			end := pos + len(child.text)
			if end <= len(path) && path[pos:end] == child.text {
				if d == nil {
					n, pos = child, end
					continue
				}
				if r := w.find(child, end, k); r != nil {
					return r
				}
			}
		}
		if d == nil {
			return nil
		}
		end := segmentEnd(path, pos)
		for i := range d.constrained {
			e := &d.constrained[i]
			if e.segment.match(path, pos, end, k, w.s) {
				if r := w.find(e.next, end, k+e.params); r != nil {
					return r
				}
			}
		}
		if d.named == nil || end == pos || path[pos] == '.' && isDotSegment(path[pos:end]) {
			return w.takeRest(d, pos, k)
		}
		w.s.setSpan(k, pos, end)
		if d.rest == nil {
			n, pos, k = d.named, end, k+1
			continue
		}
		if r := w.find(d.named, end, k+1); r != nil {
			return r
		}
		return w.takeRest(d, pos, k)
	}
	if n.end != nil {
		if r := w.take(n.end); r != nil {
			if r.prefix {
				w.s.rest = uint32(pos)
			}
			return r
		}
	}
	if n.dynamic != nil {
		return w.takeRest(n.dynamic, pos, k)
	}
	return nil
}

// segmentEnd returns the offset of the slash that ends the segment at pos, or the path's length.
func segmentEnd(path string, pos int) int {
	// Most segments are shorter than it takes to call the vectorised search.
	limit := min(len(path), pos+16)
	for ; pos < limit; pos++ {
		if path[pos] == '/' {
			return pos
		}
	}
	if i := strings.IndexByte(path[pos:], '/'); i >= 0 {
		return pos + i
	}
	return len(path)
}

// takeRest takes whatever follows pos.
func (w *walk) takeRest(d *dynamic, pos, k int) *route {
	if d.rest == nil || isDirty(w.path[pos:]) {
		return nil
	}
	r := w.take(d.rest)
	if r == nil {
		return nil
	}
	if r.prefix {
		w.s.rest = uint32(pos - 1) // its slash
	} else {
		w.s.setSpan(k, pos, len(w.path))
	}
	return r
}

// take returns the leaf's route for the method and version, or nil, noting what would have been accepted.
func (w *walk) take(l *leaf) *route {
	if l.versioned {
		return w.takeVersion(l)
	}
	for i := range l.bindings {
		if b := &l.bindings[i]; b.methods&w.method != 0 {
			w.s.head = b.implied
			return b.route
		}
	}
	w.s.missMethod(l)
	return nil
}
