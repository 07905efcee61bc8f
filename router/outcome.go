package router

// Outcome is the result of a lookup.
type Outcome uint8

const (
	// NotFound: no pattern matches host and path.
	NotFound Outcome = iota
	// Found: Match.Route is the route to run.
	Found
	// MethodNotAllowed: patterns match, none of them for this method. Match.Allow has the header value.
	MethodNotAllowed
	// NotAcceptable: pattern and method match, but no requested version exists. Match.Versions lists the existing
	// ones.
	NotAcceptable
)

func (o Outcome) String() string {
	switch o {
	case Found:
		return "found"
	case MethodNotAllowed:
		return "method not allowed"
	case NotAcceptable:
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
