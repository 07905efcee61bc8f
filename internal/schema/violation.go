package schema

import (
	"context"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// A Violation says that a value in a request does not satisfy a rule. It never contains the value, because
// violations are logged and sent, and the value may be a password.
type Violation struct {
	// In is the source of the value: "body", "path", "query", "header", "cookie" or "form".
	In string `json:"in"`
	// Name is the name of the parameter. It is empty for the body.
	Name string `json:"parameter,omitempty"`
	// Pointer identifies the value in the body, or in a parameter with several values. It is a JSON pointer as
	// a URI fragment (RFC 6901 section 6): "#/items/0/name". "#" denotes the whole body.
	Pointer string `json:"pointer,omitempty"`
	// Rule is the name of the rule in JSON Schema, such as "minLength", "required" or "type". For a text that
	// is not JSON it is "syntax".
	Rule string `json:"rule"`
	// Limit is the limit that the rule sets, as text: "3" for a minLength of 3.
	Limit string `json:"limit,omitempty"`
	// Message tells the client how to correct the value. If it is empty, Text generates a message.
	Message string `json:"detail"`
}

// Text returns Message. If Message is empty, Text returns an English text that tells the client how to correct
// the value.
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
	b = append(b[:at], b[at+1:len(b)-1]...) // remove the quotation marks
	return append(append(b, after...), `"}`...)
}

// MarshalJSON returns the output of AppendJSON.
func (v Violation) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// A report with this many violations, or this much text, is full.
const (
	maxViolations = 100
	maxText       = 32 << 10 // total text of the violations, in bytes
)

// A Report collects violations. A check ends at the first violation for which the report has no room, so that
// a client cannot cause unlimited work. A Report is not safe for concurrent use.
type Report struct {
	List []Violation
	More bool // at least one violation was found that is not in List

	// MaxElements is the maximum total number of members and elements in a text. 0 means no limit.
	MaxElements int

	// IgnoreReadOnly accepts read-only members in a request. The decoder must then ignore these members and
	// set their defaults.
	IgnoreReadOnly bool

	// IgnoreUnknown accepts unknown members in a request, except for a struct whose Unknown is UnknownRefused.
	IgnoreUnknown bool

	// Request is the request whose context ends the check. It may be nil. Ended is set if the check was ended
	// by the context or by Room.
	Request interface{ Context() context.Context }
	Ended   bool

	// Room reserves memory for the text that Check returns in place of a large body. If Room is nil, no memory
	// is reserved. If Room has no memory, the check ends and sets Ended.
	Room jsonwire.Room

	text int // bytes of text in List
}

// HasEnded reports whether the context of the request, or Room, has ended the check.
func (r *Report) HasEnded() bool {
	r.Ended = r.Ended || r.Request != nil && r.Request.Context().Err() != nil
	return r.Ended
}

// Full reports whether Add would not list another violation. Callers check this before they create the parts
// of a violation.
func (r *Report) Full() bool { return len(r.List) >= maxViolations || r.text >= maxText }

// Add adds a violation. If the report is full, it sets More instead.
func (r *Report) Add(v Violation) {
	if r.Full() {
		r.More = true
		return
	}
	r.text += len(v.Name) + len(v.Pointer) + len(v.Limit) + len(v.Message)
	r.List = append(r.List, v)
}

// Reset empties the report for reuse.
func (r *Report) Reset() {
	clear(r.List)
	*r = Report{List: r.List[:0]}
}

// OK reports whether there are no violations.
func (r *Report) OK() bool { return len(r.List) == 0 }

// pieces returns the parts of the message for a rule: the text before the limit, the limit, and the text after
// the limit.
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
		return "must not contain the same element twice: see ", n, ""
	case "pattern":
		return "must match ", n, ""
	case "enum", "contentMediaType":
		return "must be one of ", n, ""
	case "additionalProperties":
		return "is unknown", "", ""
	case "readOnly":
		return "is set by the server: it must not be sent", "", ""
	case "writeOnly":
		return "is for requests: it must not be in an answer", "", ""
	case "dependentRequired":
		return "is missing: it is required with ", n, ""
	case "duplicate":
		return "is repeated", "", ""
	case "utf8":
		return "must be valid UTF-8, without unpaired surrogates", "", ""
	case "numberLength":
		return "is a number of more than ", n, " characters"
	case "elements":
		return "exceeds the limit of ", n, " members and elements"
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

// article returns "a " or "an " for a noun, and no text if the noun needs no article.
func article(what string) string {
	switch {
	case what == "" || what == "another value":
		return ""
	case strings.IndexByte("aeioAEIO", what[0]) >= 0:
		return "an "
	}
	return "a "
}
