package typed

import (
	"reflect"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// This file is the package's only use of unsafe. A place is the address of a value
// whose type a plan knows: it is made from a pointer to a value of the very type that
// the plan was compiled from, and moves by offsets that reflect gave for that type.
// It is kept in stack frames and never beyond the call.

// place is the address of a value.
type place struct{ p unsafe.Pointer }

// placeOf is the place of *v.
func placeOf[T any](v *T) place { return place{unsafe.Pointer(v)} }

// hidden is placeOf, but *v may stay on the stack: sound where nothing that is done
// with the place keeps it, calls user code with a pointer into *v, or lets it escape.
//
//go:nocheckptr
func hidden[T any](v *T) place {
	x := uintptr(unsafe.Pointer(v))
	return *(*place)(unsafe.Pointer(&x))
}

// at is the field offset bytes into the value.
func (at place) at(offset uintptr) place { return place{unsafe.Add(at.p, offset)} }

// load reads the T at the place; store writes it. Sound because the plan says that a T,
// or a type of T's layout, is there.
func load[T any](at place) T     { return *(*T)(at.p) }
func store[T any](at place, v T) { *(*T)(at.p) = v }

// pointer is the place as a *T.
func pointer[T any](at place) *T { return (*T)(at.p) }

// value is the addressable value of type t at the place.
func (at place) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, at.p).Elem() }

// alloc stores a pointer to a new value of type t at the place, which holds a *t, and
// returns the place of the new value.
func (at place) alloc(t reflect.Type) place {
	v := reflect.New(t)
	*(*unsafe.Pointer)(at.p) = v.UnsafePointer()
	return place{v.UnsafePointer()}
}

// placeIn is the place of the value that a pointer points to.
func placeIn(pointer reflect.Value) place { return place{pointer.UnsafePointer()} }

// view is b as a string, for as long as b does not change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// decode decodes a body into the value at the place with a decoder of its type; false
// when it is refused.
func (at place) decode(d *jsonwire.Decoder, body []byte, l *jsonwire.Limits) bool {
	return d.TryAt(body, at.p, l)
}
