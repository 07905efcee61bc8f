package typed

import (
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A Schema says what a value is: a type with its rules, as documents show it. The zero Schema is
// none.
type Schema struct{ node *schema.Node }

// IsZero reports whether there is no schema.
func (s Schema) IsZero() bool { return s.node == nil }

// Type is the Go type of the values, without the pointers to it; nil where they can be of any.
func (s Schema) Type() reflect.Type {
	if s.node == nil {
		return nil
	}
	return s.node.Type
}

// Node is the schema as this module knows it; it is for this module only.
func (s Schema) Node() *schema.Node { return s.node }

// A Violation is one thing that is wrong with a request: where, and which rule is broken. It
// never holds the value.
type Violation struct {
	// In is where the value came from: "body", "path", "query", "header", "cookie" or "form".
	In string `json:"in"`
	// Name is the parameter, "" for the body.
	Name string `json:"parameter,omitempty"`
	// Pointer leads to the value in the body, or in a parameter with several values, as a
	// fragment (RFC 6901 section 6): "#/items/0/name"; "#" is the whole body. Long names, and
	// pointers of more than 1 KB, are cut and end in "…", escaped.
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
func (v *Violation) Text() string { return (*schema.Violation)(v).Text() }

// MarshalJSON writes the violation as answers have it.
func (v Violation) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

func (v *Violation) appendJSON(b []byte) []byte { return (*schema.Violation)(v).AppendJSON(b) }
