package router

// Outcome is the result of a lookup.
type Outcome uint8

const (
	// OutcomeNotFound means that no pattern matches host and path.
	OutcomeNotFound Outcome = iota
	// OutcomeFound means that Match.Route is the route to run.
	OutcomeFound
	// OutcomeMethodNotAllowed means that patterns match, but none of them for this method. Match.Allow has the header value.
	OutcomeMethodNotAllowed
	// OutcomeNotAcceptable means that pattern and method match, but no requested version exists. Match.Versions lists the existing
	// ones.
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

// A Span is the half-open byte range [Start, End) of a parameter's value in the path or host of the lookup.
type Span struct{ Start, End uint32 }

// Of returns the part of s that the span covers. It shares the memory of s.
func (s Span) Of(text string) string { return text[s.Start:s.End] }
