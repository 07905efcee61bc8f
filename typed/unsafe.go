package typed

import (
	"reflect"
	"unsafe"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// This file is the package's only use of unsafe. A place is the address of a value whose type a
// plan knows. It is made from a pointer to a value of the exact type that the plan was compiled
// from, and moves by offsets that reflect gave for that type. It is kept in stack frames only, and
// never outlives the call.

// place is the address of a value.
type place struct{ p unsafe.Pointer }

// placeOf returns the place of *v.
func placeOf[T any](v *T) place { return place{unsafe.Pointer(v)} }

// hidden is like placeOf, but permits *v to stay on the stack. This is sound if no use of the place
// retains it, calls user code with a pointer into *v, or lets it escape.
//
//go:nocheckptr
func hidden[T any](v *T) place {
	x := uintptr(unsafe.Pointer(v))
	return *(*place)(unsafe.Pointer(&x))
}

// at returns the place of the field at offset bytes into the value.
func (at place) at(offset uintptr) place { return place{unsafe.Add(at.p, offset)} }

// load returns the T at the place, and store sets it. This is sound because the plan guarantees
// that a T, or a type with T's layout, is there.
func load[T any](at place) T     { return *(*T)(at.p) }
func store[T any](at place, v T) { *(*T)(at.p) = v }

// pointer returns the place as a *T.
func pointer[T any](at place) *T { return (*T)(at.p) }

// value returns the addressable value of type t at the place.
func (at place) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, at.p).Elem() }

// alloc allocates a value of type t, stores the pointer to it at the place, which holds a *t, and
// returns the place of the new value.
func (at place) alloc(t reflect.Type) place {
	v := reflect.New(t)
	*(*unsafe.Pointer)(at.p) = v.UnsafePointer()
	return place{v.UnsafePointer()}
}

// placeIn returns the place of the value that a pointer points to.
func placeIn(pointer reflect.Value) place { return place{pointer.UnsafePointer()} }

// view returns b as a string. The string is valid until b changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// decode decodes a body into the value at the place. The decoder must be of the value's type. It
// returns false if the decoder refuses the body, or if there is no room for the value.
func (at place) decode(d *jsonwire.Decoder, body []byte, l *jsonwire.Limits, r *dunlin.Request) bool {
	return d.TryAt(body, at.p, l, r)
}
