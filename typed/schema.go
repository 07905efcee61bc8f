package typed

import (
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A Schema describes a value: its type and its rules, as documents show them. The zero Schema means
// that there is none.
type Schema struct{ node *schema.Node }

// IsZero reports whether there is no schema.
func (s Schema) IsZero() bool { return s.node == nil }

// Type returns the Go type of the values, without pointers to it. It returns nil if the values can
// be of any type.
func (s Schema) Type() reflect.Type {
	if s.node == nil {
		return nil
	}
	return s.node.Type
}

// Node returns the internal representation of the schema. It is for this module only.
func (s Schema) Node() *schema.Node { return s.node }

// A Violation is the violation of a rule by a request, with its location. It never contains the value.
type Violation struct {
	// In is the source of the value: "body", "path", "query", "header", "cookie" or "form".
	In string `json:"in"`
	// Name is the name of the parameter, "" for the body.
	Name string `json:"parameter,omitempty"`
	// Pointer identifies the value in the body, or in a parameter with several values, as a
	// fragment (RFC 6901 section 6): "#/items/0/name". "#" is the whole body. Long names, and
	// pointers of more than 1 KB, are truncated and end in "…", escaped.
	Pointer string `json:"pointer,omitempty"`
	// Rule is the broken rule in the terms of JSON Schema: "minLength", "required", "type". Text
	// that is not JSON breaks "syntax".
	Rule string `json:"rule"`
	// Limit is the limit that the rule sets, as text: "3" for minLength 3.
	Limit string `json:"limit,omitempty"`
	// Message tells the client how to correct the value. "" stands for the result of Text.
	Message string `json:"detail"`
}

// violationJSON is a Violation without its methods, which has the same JSON.
type violationJSON Violation

func init() { SchemaAs[Violation, violationJSON](``) }

// Text returns Message, or if that is "" an English text that tells the client how to correct the
// value.
func (v *Violation) Text() string { return (*schema.Violation)(v).Text() }

// MarshalJSON encodes the violation as in answers.
func (v Violation) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

func (v *Violation) appendJSON(b []byte) []byte { return (*schema.Violation)(v).AppendJSON(b) }
