package router

// A walk is the state of one lookup, on the stack.
type walk struct {
	path   string
	accept string
	method methodSet // one bit
	s      *state
}

// find returns the binding for path[pos:] in the tree below n, or nil. path[pos:] is empty or begins with a slash. k is the number
// of parameters that were recorded before.
func (w *walk) find(n *node, pos, k int) *binding {
	path := w.path
	for pos < len(path) {
		start := pos + 1
		e, child, param := n.edges.Load(), n.static.Load(), n.param.Load()
		if e != nil {
			if len(e.params) > 0 || e.rest != nil {
				return w.findAmong(e, pos, k)
			}
			end, first, hash := scanSegment(path, start)
			if child = e.findStatic(path, start, end, first, hash); child == nil {
				return nil
			}
			n, pos = child, end
			continue
		}
		var end int
		if child == nil {
			end = segmentEnd(path, start)
		} else {
			var first, hash uint64
			end, first, hash = scanSegment(path, start)
			if child.is(path, start, end, first, hash) {
				if param == nil {
					n, pos = child, end
					continue
				}
				if b := w.find(child, end, k); b != nil {
					return b
				}
			}
		}
		if param == nil {
			return nil
		}
		switch {
		case param.kind == anyValue:
			// This is matchAny without a call, because most parameters have no constraint.
			if start == end || path[start] == '.' && isDotSegment(path[start:end]) {
				return nil
			}
			w.s.setSpan(k, start, end)
		case param.kind < otherValue:
			if !param.kind.matches(path[start:end]) {
				return nil
			}
			w.s.setSpan(k, start, end)
		case !param.segment.match(path, start, end, k, w.s):
			return nil
		}
		n, pos, k = param, end, k+int(param.params)
	}
	l := n.end.Load()
	if l == nil {
		return nil
	}
	if n.endAnswers(l, w.method) {
		return &l.first
	}
	b := w.bindingOf(l)
	if b != nil && b.isPrefix {
		w.s.rest = uint32(pos)
	}
	return b
}

// findAmong does the work of the method find for a node with several edges that may match.
func (w *walk) findAmong(e *edges, pos, k int) *binding {
	path, start := w.path, pos+1
	var end int
	if len(e.slots) == 0 {
		end = segmentEnd(path, start)
	} else {
		var first, hash uint64
		end, first, hash = scanSegment(path, start)
		if child := e.findStatic(path, start, end, first, hash); child != nil {
			if b := w.find(child, end, k); b != nil {
				return b
			}
		}
	}
	for _, param := range e.params {
		if param.kind == otherValue {
			if !param.segment.match(path, start, end, k, w.s) {
				continue
			}
		} else {
			if !param.kind.matches(path[start:end]) {
				continue
			}
			w.s.setSpan(k, start, end)
		}
		if b := w.find(param, end, k+int(param.params)); b != nil {
			return b
		}
	}
	return w.matchRest(e.rest, pos, k)
}

// matchRest matches the rest of the path after the slash at pos against the catch-alls and prefix routes of l. l may be nil.
func (w *walk) matchRest(l *leaf, pos, k int) *binding {
	if l == nil || isDirty(w.path[pos+1:]) {
		return nil
	}
	b := w.bindingOf(l)
	switch {
	case b == nil:
	case b.isPrefix:
		w.s.rest = uint32(pos)
	default:
		w.s.setSpan(k, pos+1, len(w.path))
	}
	return b
}

// bindingOf returns the binding of the leaf for the method and the version. If the leaf has none, bindingOf returns nil and records
// the methods and versions of the leaf.
func (w *walk) bindingOf(l *leaf) *binding {
	if l.first.methods&w.method != 0 {
		return &l.first
	}
	return w.otherBinding(l)
}

func (w *walk) otherBinding(l *leaf) *binding {
	if l.versioned {
		return w.versionBinding(l)
	}
	for i := range l.bindings {
		if b := &l.bindings[i]; b.methods&w.method != 0 {
			return b
		}
	}
	w.s.missMethod(l)
	return nil
}
