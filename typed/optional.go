package typed

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// Optional is a value that may be absent: a parameter, or a member of a body with the option
// omitzero. Null does not count as absent, and is refused unless T accepts it.
type Optional[T any] struct {
	Value T
	Set   bool // true if it is present
}

// OptionalOf returns a present Optional with the value v.
func OptionalOf[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Get returns the value, and whether it is present.
func (o Optional[T]) Get() (T, bool) { return o.Value, o.Set }

// Or returns the value, or other if it is absent.
func (o Optional[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// MarshalJSON encodes the value, or null if it is absent.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Set {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSON decodes the value and sets Set.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	return json.Unmarshal(b, &o.Value)
}

// Wraps returns the wrapped type. It is for this module only.
func (Optional[T]) Wraps() schema.Wrapped {
	return schema.Wrapped{Elem: reflect.TypeFor[T](), Optional: true}
}

// WrapsJSON returns the field names for a decoder. It is for this module only.
func (Optional[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "Value", Set: "Set"}
}

// Nullable is a member of a body that may be null. With the option omitempty or omitzero it may
// also be absent; then it is the zero Nullable.
type Nullable[T any] struct {
	Value T
	Set   bool // true if there is a value
	Null  bool // true if it is null
}

// NullableOf returns a Nullable with the value v. Nullable[T]{Null: true} is null.
func NullableOf[T any](v T) Nullable[T] { return Nullable[T]{Value: v, Set: true} }

// Get returns the value, and whether there is one.
func (n Nullable[T]) Get() (T, bool) { return n.Value, n.Set }

// MarshalJSON encodes the value, or null if there is none.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if !n.Set {
		return []byte("null"), nil
	}
	return json.Marshal(n.Value)
}

// UnmarshalJSON decodes a value or null.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		*n = Nullable[T]{Null: true}
		return nil
	}
	n.Set, n.Null = true, false
	return json.Unmarshal(b, &n.Value)
}

// Wraps returns the wrapped type. It is for this module only.
func (Nullable[T]) Wraps() schema.Wrapped {
	return schema.Wrapped{Elem: reflect.TypeFor[T](), Nullable: true}
}

// WrapsJSON returns the field names for a decoder. It is for this module only.
func (Nullable[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "Value", Set: "Set", Null: "Null", AcceptNull: true}
}
