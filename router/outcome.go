package router

// Outcome is the result of a lookup.
type Outcome uint8

const (
	// OutcomeNotFound means that no pattern matches the host and the path.
	OutcomeNotFound Outcome = iota
	// OutcomeFound means that a route matches; Match.Route returns it.
	OutcomeFound
	// OutcomeMethodNotAllowed means that patterns match, but none of their routes has the method. Match.Allow returns the value of
	// the Allow header.
	OutcomeMethodNotAllowed
	// OutcomeNotAcceptable means that routes match the path and the method, but none of them has a requested version.
	// Match.Versions returns the existing versions.
	OutcomeNotAcceptable
)

func (o Outcome) String() string {
	switch o {
	case OutcomeFound:
		return "found"
	case OutcomeMethodNotAllowed:
		return "method not allowed"
	case OutcomeNotAcceptable:
		return "not acceptable"
	default:
		return "not found"
	}
}

// A Span is the byte range [Start, End) of the value of a parameter in the path or host that was looked up.
type Span struct{ Start, End uint32 }

// Of returns the part of text that the span denotes. The result shares the memory of text.
func (s Span) Of(text string) string { return text[s.Start:s.End] }
