package typed

import (
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A Schema describes a value as documents show it: by its type and its rules. The zero Schema
// describes no value.
type Schema struct{ node *schema.Node }

// IsZero reports whether s is the zero Schema.
func (s Schema) IsZero() bool { return s.node == nil }

// Type returns the Go type of the values. The type is not a pointer. Type returns nil if the values
// can be of any type.
func (s Schema) Type() reflect.Type {
	if s.node == nil {
		return nil
	}
	return s.node.Type
}

// Node returns the internal representation of the schema. Only this module can use it.
func (s Schema) Node() *schema.Node { return s.node }

// A Violation says that a value in a request does not satisfy a rule. It has the location of the
// value, and never contains the value.
type Violation struct {
	// In is the source of the value: "body", "path", "query", "header", "cookie" or "form".
	In string `json:"in"`
	// Name is the name of the parameter. It is empty for the body.
	Name string `json:"parameter,omitempty"`
	// Pointer identifies the value in the body, or in a parameter with several values. It is a JSON
	// pointer as a URI fragment (RFC 6901 section 6): "#/items/0/name". "#" denotes the whole body. A
	// long name, and a pointer of more than 1 KiB, is truncated and ends in an escaped "…".
	Pointer string `json:"pointer,omitempty"`
	// Rule is the name of the rule in JSON Schema, such as "minLength", "required" or "type". For a
	// text that is not JSON it is "syntax".
	Rule string `json:"rule"`
	// Limit is the limit that the rule sets, as text: "3" for a minLength of 3.
	Limit string `json:"limit,omitempty"`
	// Message tells the client how to correct the value. If it is empty, Text generates a message.
	Message string `json:"detail"`
}

// violationJSON is Violation without its methods. Its JSON is the same.
type violationJSON Violation

func init() { SchemaAs[Violation, violationJSON](``) }

// Text returns Message. If Message is empty, Text returns an English text that tells the client how to
// correct the value.
func (v *Violation) Text() string { return (*schema.Violation)(v).Text() }

// MarshalJSON returns the JSON that answers contain for the violation.
func (v Violation) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

func (v *Violation) appendJSON(b []byte) []byte { return (*schema.Violation)(v).AppendJSON(b) }
