package router

// Outcome is the result of a lookup.
type Outcome uint8

const (
	// OutcomeNotFound: no pattern matches host and path.
	OutcomeNotFound Outcome = iota
	// OutcomeFound: Match.Route is the route to run.
	OutcomeFound
	// OutcomeMethodNotAllowed: patterns match, but none of them for this method. Match.Allow has the header value.
	OutcomeMethodNotAllowed
	// OutcomeNotAcceptable: pattern and method match, but no requested version exists. Match.Versions lists the existing
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

// Span is the half-open byte range [Start, End) of a parameter's value in the path (or host) that was
// looked up.
type Span struct{ Start, End uint32 }

// Of returns the bytes of s that the span covers, sharing s's memory.
func (s Span) Of(text string) string { return text[s.Start:s.End] }
