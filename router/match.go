package router

// inlineSpans is the number of parameters that a Match stores without an additional slice. No route of the large public APIs has more
// than 8 parameters.
const inlineSpans = 8

// Match is the result of a lookup. It is meant to be embedded by value in a reused request: it holds
// offsets into the strings that were looked up, never the strings. The zero value is ready for use. It
// is not safe for concurrent use.
type Match[T any] struct {
	found *binding
	state state
}

// state is the part of a match that does not depend on the stored type.
type state struct {
	spans [inlineSpans]Span
	more  []Span // spans beyond inlineSpans; reused by later lookups
	rest  uint32
	kept  *memory // allocated on demand

	// The methods and versions that the matching leaves accept. The other two fields are valid only if this is not 0.
	missed  uint8 // number of leaves missed by method or version, at most 2
	varies  bool  // a visited leaf has versions
	miss    *leaf // first of these leaves
	allowed methodSet
	// The versions that exist, if some leaf was missed by version.
	versions []string
	methods  *methodTable
}

// Route returns the matched route, or nil. It must not be changed.
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

// Len returns the number of parameters of the matched route, including those of its host, which come first.
func (m *Match[T]) Len() int {
	if m.found == nil {
		return 0
	}
	return len(m.found.route.names)
}

// Name returns the name of the i-th parameter.
func (m *Match[T]) Name(i int) string { return m.found.route.names[i] }

// Span returns the position of the i-th parameter's value, in the host if InHost(i), else in the path. In
// the path the value is canonical: see AppendValue.
func (m *Match[T]) Span(i int) Span { return m.state.span(i) }

// InHost reports whether the i-th parameter's value is in the host.
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

// Rest returns the offset in the path at which the part below a prefix route begins: at a slash, or at
// the end of the path. It is 0 for other routes.
func (m *Match[T]) Rest() int { return int(m.state.rest) }

// HeadFromGet reports whether the request is a HEAD that a route for GET answers.
func (m *Match[T]) HeadFromGet() bool { return m.found != nil && m.found.implied }

// Allow returns the value of the Allow header after MethodNotAllowed, OPTIONS included. It allocates
// only when several patterns match the path.
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

// Versions returns the versions that exist, in order, after NotAcceptable. It must not be changed.
func (m *Match[T]) Versions() []string {
	if m.state.missed == 0 {
		return nil
	}
	return m.state.versions
}

// Varies reports whether the outcome of LookupAccept depended on the Accept header, because there are versions for the path
// and method. Caches need this information.
func (m *Match[T]) Varies() bool { return m.state.varies }

// Reset clears the match, so that m keeps no router alive. It need not be called before a lookup.
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

// TakeParams takes the route and the parameters from another match of the same host and path. Allow and Versions
// stay those of m.
func (m *Match[T]) TakeParams(from *Match[T]) {
	m.found, m.state.spans, m.state.rest = from.found, from.state.spans, from.state.rest
	m.state.more = append(m.state.more[:0], from.state.more...)
}

// memory is for strings that a lookup must change. It is reused by later lookups.
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

// missMethod records a leaf that has no route for the method.
func (s *state) missMethod(l *leaf) {
	if s.missed == 0 {
		s.miss, s.allowed, s.versions = l, 0, nil
	}
	s.missed = min(s.missed+1, 2)
	s.allowed |= l.methods
}

// missVersion records a leaf that has routes for the method, but not in a requested version.
func (s *state) missVersion(l *leaf) {
	s.missMethod(l)
	if s.versions == nil {
		s.versions = l.versions
	} else {
		s.versions = mergeVersions(s.versions, l.versions)
	}
}

// outcome returns the outcome of a lookup from the leaves that matched the path but not the request.
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

// setSpan records the i-th value.
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
