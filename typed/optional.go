package typed

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// Optional is a value that may be absent: a parameter, or a member of a body with the option
// omitzero. A member that is null is not absent: null is refused unless T accepts it.
type Optional[T any] struct {
	Value T
	Set   bool // the value is present
}

// OptionalOf returns an Optional with the value v.
func OptionalOf[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Get returns the value, and whether it is present.
func (o Optional[T]) Get() (T, bool) { return o.Value, o.Set }

// Or returns the value, or other if the value is absent.
func (o Optional[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// MarshalJSON returns the JSON of the value, or null if the value is absent.
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

// Wraps returns the wrapped type. Only this module can use it.
func (Optional[T]) Wraps() schema.Wrapped {
	return schema.Wrapped{Elem: reflect.TypeFor[T](), Optional: true}
}

// WrapsJSON returns the names of the fields. Only this module can use it.
func (Optional[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "Value", Set: "Set"}
}

// Nullable is a member of a body that may be null. With the option omitempty or omitzero it may
// also be absent. An absent member is the zero Nullable.
type Nullable[T any] struct {
	Value T
	Set   bool // the member has a value
	Null  bool // the member is null
}

// NullableOf returns a Nullable with the value v. The null Nullable is Nullable[T]{Null: true}.
func NullableOf[T any](v T) Nullable[T] { return Nullable[T]{Value: v, Set: true} }

// Get returns the value, and whether the member has a value.
func (n Nullable[T]) Get() (T, bool) { return n.Value, n.Set }

// MarshalJSON returns the JSON of the value, or null if there is no value.
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

// Wraps returns the wrapped type. Only this module can use it.
func (Nullable[T]) Wraps() schema.Wrapped {
	return schema.Wrapped{Elem: reflect.TypeFor[T](), Nullable: true}
}

// WrapsJSON returns the names of the fields. Only this module can use it.
func (Nullable[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "Value", Set: "Set", Null: "Null", AcceptNull: true}
}
