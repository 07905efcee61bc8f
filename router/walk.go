package router

// walk is one lookup on its way through the tree. It lives on the stack.
type walk struct {
	path   string
	accept string
	method methodSet // one bit
	s      *state
}

// find returns the binding that path[pos:], which is empty or begins with a slash, leads to from n, or
// nil. k parameters have been recorded so far.
func (w *walk) find(n *node, pos, k int) *binding {
	path := w.path
segments:
	for pos < len(path) {
		start := pos + 1
		d, next := n.dynamic.Load(), n.named.Load()
		var end int
		t, child := n.statics.Load(), n.only.Load()
		if child == nil {
			end = segmentEnd(path, start)
		} else {
			var first, hash uint64
			end, first, hash = scanSegment(path, start)
			if t != nil {
				child = t.find(path, start, end, first, hash)
			} else if !child.is(path, start, end, first) {
				child = nil
			}
			if child != nil {
				if d == nil && next == nil {
					n, pos = child, end
					continue
				}
				if b := w.find(child, end, k); b != nil {
					return b
				}
			}
		}
		if d != nil {
			for i := range d.constrained {
				e := &d.constrained[i]
				if e.check != nil {
					// No built-in constraint accepts an empty or a dot segment.
					if !e.check(path[start:end]) {
						continue
					}
					w.s.setSpan(k, start, end)
				} else if !e.segment.match(path, start, end, k, w.s) {
					continue
				}
				if i == len(d.constrained)-1 && next == nil && d.rest == nil {
					n, pos, k = e.next, end, k+e.params
					continue segments
				}
				if b := w.find(e.next, end, k+e.params); b != nil {
					return b
				}
			}
		}
		if next == nil || end == start || path[start] == '.' && isDotSegment(path[start:end]) {
			return w.takeRest(d, pos, k)
		}
		w.s.setSpan(k, start, end)
		if d == nil || d.rest == nil {
			n, pos, k = next, end, k+1
			continue
		}
		if b := w.find(next, end, k+1); b != nil {
			return b
		}
		return w.takeRest(d, pos, k)
	}
	l := n.end.Load()
	if l == nil {
		return nil
	}
	b := w.take(l)
	if b != nil && b.below {
		w.s.rest = uint32(pos)
	}
	return b
}

// takeRest takes whatever follows the slash at pos. d may be nil.
func (w *walk) takeRest(d *dynamic, pos, k int) *binding {
	if d == nil || d.rest == nil || isDirty(w.path[pos+1:]) {
		return nil
	}
	b := w.take(d.rest)
	switch {
	case b == nil:
	case b.below:
		w.s.rest = uint32(pos)
	default:
		w.s.setSpan(k, pos+1, len(w.path))
	}
	return b
}

// take returns the leaf's binding for the method and version, or nil, noting what would have been accepted.
func (w *walk) take(l *leaf) *binding {
	if l.first.methods&w.method != 0 {
		return &l.first
	}
	return w.takeOther(l)
}

func (w *walk) takeOther(l *leaf) *binding {
	if l.versioned {
		return w.takeVersion(l)
	}
	for i := range l.bindings {
		if b := &l.bindings[i]; b.methods&w.method != 0 {
			return b
		}
	}
	w.s.missMethod(l)
	return nil
}
