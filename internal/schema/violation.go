package schema

import (
	"context"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// A Violation is one thing that is wrong with a request. It never holds the value: a
// problem is logged and shown, and the value may be a password.
type Violation struct {
	// In is where the value came from: "body", "path", "query", "header", "cookie" or "form".
	In string `json:"in"`
	// Name is the parameter, "" for the body.
	Name string `json:"parameter,omitempty"`
	// Pointer leads to the value in the body, or in a parameter with several values, as a
	// fragment (RFC 6901 section 6): "#/items/0/name"; "#" is the whole body.
	Pointer string `json:"pointer,omitempty"`
	// Rule is the rule in the words of JSON Schema: "minLength", "required", "type". What
	// is no JSON at all breaks "syntax".
	Rule string `json:"rule"`
	// Limit is what the rule asks for, as text: "3" for minLength 3.
	Limit string `json:"limit,omitempty"`
	// Message says what must be mended; "" stands for what Text says.
	Message string `json:"detail"`
}

// Text says in English what must be mended, or what Message says.
func (v *Violation) Text() string {
	if v.Message != "" {
		return v.Message
	}
	before, limit, after := v.pieces()
	return before + limit + after
}

// AppendJSON appends the violation as a JSON object.
func (v *Violation) AppendJSON(b []byte) []byte {
	member := func(name, value string) {
		b = append(append(b, name...), `":`...)
		b = jsonwire.AppendString(b, value, jsonwire.Options{})
	}
	b = append(b, '{')
	member(`"in`, v.In)
	if v.Name != "" {
		member(`,"parameter`, v.Name)
	}
	if v.Pointer != "" {
		member(`,"pointer`, v.Pointer)
	}
	member(`,"rule`, v.Rule)
	if v.Limit != "" {
		member(`,"limit`, v.Limit)
	}
	if v.Message != "" {
		member(`,"detail`, v.Message)
		return append(b, '}')
	}
	before, limit, after := v.pieces()
	b = append(append(b, `,"detail":"`...), before...)
	at := len(b)
	b = jsonwire.AppendString(b, limit, jsonwire.Options{})
	b = append(b[:at], b[at+1:len(b)-1]...) // without its quotation marks
	return append(append(b, after...), `"}`...)
}

// MarshalJSON is AppendJSON.
func (v Violation) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// A report is full when it holds this much.
const (
	mostViolations = 100
	mostText       = 32 << 10 // bytes of all its violations
)

// A Report collects violations. Once it is Full its users stop reading: the rest of a request
// costs nothing.
type Report struct {
	List []Violation
	More bool // there are further ones, at least one of which was found

	// MaxElements is how many members and elements a text may have in all; 0 is no bound.
	MaxElements int

	// IgnoreReadOnly takes members of a request that are read-only, for decoders that ignore
	// them and give them their defaults.
	IgnoreReadOnly bool

	// IgnoreUnknown takes members of a request that its structs do not have, unless these say
	// otherwise.
	IgnoreUnknown bool

	// Request is whose context ends the reading, which sets Ended; nil for none.
	Request interface{ Context() context.Context }
	Ended   bool

	text int // bytes in List
}

// HasEnded reports whether the request of the report has ended.
func (r *Report) HasEnded() bool {
	r.Ended = r.Ended || r.Request != nil && r.Request.Context().Err() != nil
	return r.Ended
}

// Full reports whether Add would add nothing. Callers look before they make the parts of a
// violation.
func (r *Report) Full() bool { return len(r.List) >= mostViolations || r.text >= mostText }

// Add adds a violation, unless the report is full.
func (r *Report) Add(v Violation) {
	if r.Full() {
		r.More = true
		return
	}
	r.text += len(v.Name) + len(v.Pointer) + len(v.Limit) + len(v.Message)
	r.List = append(r.List, v)
}

// Reset empties the report, which may be used again.
func (r *Report) Reset() {
	clear(r.List)
	*r = Report{List: r.List[:0]}
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.List) == 0 }

// pieces are the message of a rule: what stands before its limit, the limit, and what
// stands behind.
func (v *Violation) pieces() (before, limit, after string) {
	n := v.Limit
	switch v.Rule {
	case "required":
		return "is missing", "", ""
	case "type":
		switch article(n) {
		case "a ":
			return "must be a ", n, ""
		case "an ":
			return "must be an ", n, ""
		}
		return "must be ", n, ""
	case "format":
		return "must be ", formatName(n), ""
	case "minimum":
		return "must be at least ", n, ""
	case "maximum":
		return "must be at most ", n, ""
	case "exclusiveMinimum":
		return "must be more than ", n, ""
	case "exclusiveMaximum":
		return "must be less than ", n, ""
	case "multipleOf":
		return "must be a multiple of ", n, ""
	case "minLength":
		return "must have at least ", n, plural(n, " character", " characters")
	case "maxLength":
		return "must have at most ", n, plural(n, " character", " characters")
	case "minItems":
		return "must have at least ", n, plural(n, " element", " elements")
	case "maxItems":
		return "must have at most ", n, plural(n, " element", " elements")
	case "minProperties":
		return "must have at least ", n, plural(n, " member", " members")
	case "maxProperties":
		return "must have at most ", n, plural(n, " member", " members")
	case "uniqueItems":
		return "must not hold the same element twice: see ", n, ""
	case "pattern":
		return "must match ", n, ""
	case "enum", "contentMediaType":
		return "must be one of ", n, ""
	case "additionalProperties":
		return "is not known here", "", ""
	case "readOnly":
		return "is set by the server: it must not be sent", "", ""
	case "writeOnly":
		return "is for requests: it must not be answered", "", ""
	case "dependentRequired":
		return "is missing: it goes with ", n, ""
	case "duplicate":
		return "stands here a second time", "", ""
	case "utf8":
		return "must be valid UTF-8, without half surrogate pairs", "", ""
	case "numberLength":
		return "is a number of more than ", n, " characters"
	case "elements":
		return "is where the body has more than ", n, " members and elements"
	case "depth":
		return "is nested more than ", n, " levels deep"
	case "single":
		return "must be given once", "", ""
	case "empty":
		return "is missing: the request must have a body", "", ""
	}
	return "is invalid", "", ""
}

func plural(n, one, many string) string {
	if n == "1" {
		return one
	}
	return many
}

// article returns the indefinite article of a word for what is wanted.
func article(what string) string {
	switch {
	case what == "" || what == "another value":
		return ""
	case strings.IndexByte("aeioAEIO", what[0]) >= 0:
		return "an "
	}
	return "a "
}
