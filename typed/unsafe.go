package typed

import (
	"reflect"
	"unsafe"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// This file is the package's only use of unsafe. An address points to a value whose type a
// plan knows. It is made from a pointer to a value of the exact type that the plan was compiled
// from, and moves by offsets that reflect gave for that type. It is kept in stack frames only, and
// never outlives the call.

// An address points to a value.
type address struct{ p unsafe.Pointer }

// addressOf returns the address of *v.
func addressOf[T any](v *T) address { return address{unsafe.Pointer(v)} }

// hidden is like addressOf, but permits *v to stay on the stack. This is sound if no use of the address
// retains it, calls user code with a pointer into *v, or lets it escape.
//
//go:nocheckptr
func hidden[T any](v *T) address {
	x := uintptr(unsafe.Pointer(v))
	return *(*address)(unsafe.Pointer(&x))
}

// at returns the address of the field at offset bytes into the value.
func (at address) at(offset uintptr) address { return address{unsafe.Add(at.p, offset)} }

// load returns the T at the address, and store sets it. This is sound because the plan guarantees
// that a T, or a type with T's layout, is there.
func load[T any](at address) T     { return *(*T)(at.p) }
func store[T any](at address, v T) { *(*T)(at.p) = v }

// pointer returns the address as a *T.
func pointer[T any](at address) *T { return (*T)(at.p) }

// value returns the addressable value of type t at the address.
func (at address) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, at.p).Elem() }

// alloc allocates a value of type t, stores the pointer to it at the address, which holds a *t, and
// returns the address of the new value.
func (at address) alloc(t reflect.Type) address {
	v := reflect.New(t)
	*(*unsafe.Pointer)(at.p) = v.UnsafePointer()
	return address{v.UnsafePointer()}
}

// addressIn returns the address of the value that a pointer points to.
func addressIn(pointer reflect.Value) address { return address{pointer.UnsafePointer()} }

// view returns b as a string. The string is valid until b changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// decode decodes a body into the value at the address. The decoder must be of the value's type. It
// returns false if the decoder refuses the body, or if there is no room for the value.
func (at address) decode(d *jsonwire.Decoder, body []byte, l *jsonwire.Limits, r *dunlin.Request) bool {
	return d.TryAt(body, at.p, l, r)
}
