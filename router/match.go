package router

// inlineSpans is the number of parameters that a Match stores without an additional slice. No route of the large public APIs that
// were examined has more than eight parameters.
const inlineSpans = 8

// Match is the result of a lookup. A caller embeds it by value in a request that it reuses. A Match contains offsets into the strings
// that were looked up, and not the strings. The zero value is ready for use. A Match is not safe for concurrent use.
type Match[T any] struct {
	found *binding
	state state
}

// state is the part of a match that does not depend on the stored type.
type state struct {
	spans [inlineSpans]Span
	more  []Span  // spans of the parameters after the first inlineSpans; later lookups reuse the memory
	rest  uint32  // result of Match.Rest
	kept  *memory // allocated on demand

	// These fields describe the leaves that matched the path but not the method or version. miss, allowed and versions are valid only
	// if missed is not 0.
	missed  uint8 // number of such leaves; 2 stands for two or more
	varies  bool  // a leaf with versions was visited
	miss    *leaf // the first such leaf
	allowed methodSet
	// The existing versions, if a leaf matched the method but had no acceptable version.
	versions []string
	methods  *methodTable
}

// Route returns the matched route, or nil. The caller must not change it.
func (m *Match[T]) Route() *Route[T] {
	if m.found == nil {
		return nil
	}
	return &m.found.route.entry.(*entry[T]).Route
}

// Value returns the value of the matched route, or the zero value. It is faster than Route().Value.
func (m *Match[T]) Value() T {
	var v T
	if m.found != nil {
		v, _ = m.found.value.(T)
	}
	return v
}

// Len returns the number of parameters of the matched route. The parameters of the host come first.
func (m *Match[T]) Len() int {
	if m.found == nil {
		return 0
	}
	return len(m.found.route.names)
}

// Name returns the name of parameter i.
func (m *Match[T]) Name(i int) string { return m.found.route.names[i] }

// Span returns the position of the value of parameter i. The position is in the host if InHost(i) is true, and otherwise in the path.
// A value in the path is canonical: see AppendValue.
func (m *Match[T]) Span(i int) Span { return m.state.span(i) }

// InHost reports whether the value of parameter i is in the host.
func (m *Match[T]) InHost(i int) bool { return i < m.found.route.hostParams }

// Index returns the index of the parameter with the given name, or -1.
func (m *Match[T]) Index(name string) int {
	if m.found != nil {
		for i, n := range m.found.route.names {
			if n == name {
				return i
			}
		}
	}
	return -1
}

// Rest returns the offset in the path of the part below the prefix of a prefix route. A slash, or the end of the path, is at this
// offset. Rest returns 0 for other routes.
func (m *Match[T]) Rest() int { return int(m.state.rest) }

// HeadFromGet reports whether the request has the method HEAD and is answered by a route for GET.
func (m *Match[T]) HeadFromGet() bool { return m.found != nil && m.found.implied }

// Allow returns the value of the Allow header after OutcomeMethodNotAllowed. The value includes OPTIONS. Allow allocates only if
// several patterns match the path.
func (m *Match[T]) Allow() string {
	switch s := &m.state; {
	case s.missed == 0:
		return ""
	case s.missed == 1:
		return s.miss.allow
	default:
		return s.methods.allow(s.allowed)
	}
}

// Versions returns the existing versions in order, after OutcomeNotAcceptable. The caller must not change the slice.
func (m *Match[T]) Versions() []string {
	if m.state.missed == 0 {
		return nil
	}
	return m.state.versions
}

// Varies reports whether the outcome of LookupAccept depended on the Accept header, because routes with versions exist for the path
// and method. An HTTP cache needs this information.
func (m *Match[T]) Varies() bool { return m.state.varies }

// Reset clears the match, so that it does not keep a router in memory. A lookup does not need a call of Reset before it.
func (m *Match[T]) Reset() {
	m.found = nil
	s := &m.state
	s.missed, s.miss, s.versions, s.methods = 0, nil, nil, nil
}

// CopyTo copies m to dst. The copy has its own memory.
func (m *Match[T]) CopyTo(dst *Match[T]) {
	own := &dst.state
	more, kept := own.more, own.kept
	dst.found, dst.state = m.found, m.state
	own.more = append(more[:0], m.state.more...)
	own.kept = kept
}

// TakeParams copies the route and the parameters from another match of the same host and path. The results of Allow and Versions do
// not change.
func (m *Match[T]) TakeParams(from *Match[T]) {
	m.found, m.state.spans, m.state.rest = from.found, from.state.spans, from.state.rest
	m.state.more = append(m.state.more[:0], from.state.more...)
}

// memory is used for strings that a lookup must change. Later lookups reuse it.
type memory struct {
	value []byte // unescaped values for constraints
	host  []byte // host in lower case
	path  []byte // for OtherSlash
}

func (s *state) memory() *memory {
	if s.kept == nil {
		s.kept = new(memory)
	}
	return s.kept
}

// begin prepares the match for a lookup.
func (s *state) begin() {
	s.rest, s.missed, s.varies = 0, 0, false
}

// missMethod records a leaf that matches the path and has no route for the method.
func (s *state) missMethod(l *leaf) {
	if s.missed == 0 {
		s.miss, s.allowed, s.versions = l, 0, nil
	}
	s.missed = min(s.missed+1, 2)
	s.allowed |= l.methods
}

// missVersion records a leaf that has routes for the method, but no requested version.
func (s *state) missVersion(l *leaf) {
	s.missMethod(l)
	if s.versions == nil {
		s.versions = l.versions
	} else {
		s.versions = mergeVersions(s.versions, l.versions)
	}
}

// outcome returns the outcome of a lookup that found no route.
func (s *state) outcome() Outcome {
	if s.versions != nil {
		return OutcomeNotAcceptable
	}
	return OutcomeMethodNotAllowed
}

func (s *state) span(i int) Span {
	if i < inlineSpans {
		return s.spans[i]
	}
	return s.more[i-inlineSpans]
}

// setSpan records the position of the value of parameter i.
func (s *state) setSpan(i, start, end int) {
	span := Span{uint32(start), uint32(end)}
	if i < inlineSpans {
		s.spans[i] = span
		return
	}
	i -= inlineSpans
	for len(s.more) <= i {
		s.more = append(s.more, Span{})
	}
	s.more[i] = span
}
