package typed

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// Optional is a value that may be absent: a parameter, or a member of a body with the
// option omitzero. Null is not absence and refused, unless T takes it.
type Optional[T any] struct {
	Value T
	Set   bool // whether it was there
}

// Some returns an Optional that is there.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Get returns the value and whether it was there.
func (o Optional[T]) Get() (T, bool) { return o.Value, o.Set }

// Or returns the value, or another when it was absent.
func (o Optional[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// MarshalJSON writes the value, null when it is absent.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Set {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSON reads the value.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	return json.Unmarshal(b, &o.Value)
}

// Wraps says what the type stands for; it is for this module only.
func (Optional[T]) Wraps() schema.Wrapped {
	return schema.Wrapped{Elem: reflect.TypeFor[T](), Optional: true}
}

// WrapsJSON says how a decoder sets it; it is for this module only.
func (Optional[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "Value", Set: "Set"}
}

// Nullable is a value that may be null: a member of a body. With the options omitempty
// or omitzero it may be absent, too, which leaves it the zero Nullable.
type Nullable[T any] struct {
	Value T
	Set   bool // there is a value
	Null  bool // it was null
}

// Just returns a Nullable with a value, and Null one that is null.
func Just[T any](v T) Nullable[T] { return Nullable[T]{Value: v, Set: true} }

// Null returns a Nullable that is null.
func Null[T any]() Nullable[T] { return Nullable[T]{Null: true} }

// Get returns the value and whether there is one.
func (n Nullable[T]) Get() (T, bool) { return n.Value, n.Set }

// MarshalJSON writes the value, null when there is none.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if !n.Set {
		return []byte("null"), nil
	}
	return json.Marshal(n.Value)
}

// UnmarshalJSON reads a value or null.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		*n = Nullable[T]{Null: true}
		return nil
	}
	n.Set, n.Null = true, false
	return json.Unmarshal(b, &n.Value)
}

// Wraps says what the type stands for; it is for this module only.
func (Nullable[T]) Wraps() schema.Wrapped {
	return schema.Wrapped{Elem: reflect.TypeFor[T](), Nullable: true}
}

// WrapsJSON says how a decoder sets it; it is for this module only.
func (Nullable[T]) WrapsJSON() jsonwire.Wrapping {
	return jsonwire.Wrapping{Value: "Value", Set: "Set", Null: "Null", AcceptNull: true}
}
