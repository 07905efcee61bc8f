package router

// inlineSpans is the number of parameters that a Match holds without a slice of its own. 12 parameters
// are more than any route of the large public APIs has.
const inlineSpans = 12

// Match is the result of a lookup. It is meant to be embedded by value in a reused request: it holds
// offsets into the strings that were looked up, never the strings. The zero value is ready for use. It
// is not safe for concurrent use.
type Match[T any] struct {
	entry *entry[T]
	path  []byte // space for OtherSlash
	state state
}

// state is the part of a match that does not depend on the stored type.
type state struct {
	route   *route
	spans   [inlineSpans]Span
	more    []Span // of the parameters beyond inlineSpans; kept from lookup to lookup
	rest    uint32
	head    bool   // HEAD answered by a route for GET
	scratch []byte // for unescaping; grows to the longest value a constraint saw unescaped

	// What the patterns that matched would have accepted, gathered while nothing is found.
	allowed  methodSet
	allow    string // Allow value, as long as only one pattern matched
	versions []string
	table    *table
}

// Route returns the route that was found, or nil. It must not be changed.
func (m *Match[T]) Route() *Route[T] {
	if m.entry == nil {
		return nil
	}
	return &m.entry.Route
}

// Len returns the number of parameters of the route that was found, those of its host first.
func (m *Match[T]) Len() int {
	if m.entry == nil {
		return 0
	}
	return len(m.entry.route.names)
}

// Name returns the name of the i-th parameter.
func (m *Match[T]) Name(i int) string { return m.entry.route.names[i] }

// Span returns the place of the i-th parameter's value, in the host if InHost(i), else in the path. In
// the path the value is canonical: see AppendValue.
func (m *Match[T]) Span(i int) Span { return m.state.span(i) }

// InHost reports whether the i-th parameter's value is in the host.
func (m *Match[T]) InHost(i int) bool { return i < m.entry.route.hostParams }

// Index returns the index of the parameter with that name, or -1.
func (m *Match[T]) Index(name string) int {
	if m.entry != nil {
		for i, n := range m.entry.route.names {
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
func (m *Match[T]) HeadFromGet() bool { return m.state.head }

// Allow returns the value of the Allow header after MethodNotAllowed, OPTIONS included. It allocates
// only when several patterns match the path.
func (m *Match[T]) Allow() string {
	if m.state.allow == "" && m.state.allowed != 0 {
		return m.state.table.methods.allow(m.state.allowed)
	}
	return m.state.allow
}

// Versions returns the versions that exist, in order, after NotAcceptable. It must not be changed.
func (m *Match[T]) Versions() []string { return m.state.versions }

// Reset forgets what was found, so that m keeps no router alive.
func (m *Match[T]) Reset() {
	m.entry = nil
	m.state.reset()
}

func (s *state) reset() {
	s.route, s.rest, s.head = nil, 0, false
	s.allowed, s.allow, s.versions, s.table = 0, "", nil, nil
}

func (s *state) span(i int) Span {
	if i < inlineSpans {
		return s.spans[i]
	}
	return s.more[i-inlineSpans]
}

// setSpan records the i-th value, after the i values before it.
func (s *state) setSpan(i, start, end int) {
	span := Span{uint32(start), uint32(end)}
	if i < inlineSpans {
		s.spans[i] = span
		return
	}
	s.more = append(s.more[:i-inlineSpans], span)
}
