package typed

import (
	"reflect"
	"unsafe"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// This file is the only file of the package that uses unsafe. An address is made from a pointer to a
// value of exactly the type from which a plan was compiled. It moves by offsets that reflect returned
// for that type. It is kept only in stack frames, and never after the call.

// An address is a pointer to a value whose type a plan knows.
type address struct{ p unsafe.Pointer }

// addressOf returns the address of *v.
func addressOf[T any](v *T) address { return address{unsafe.Pointer(v)} }

// hidden is like addressOf, but *v may stay on the stack. This is sound if no use of the address
// retains it, passes a pointer into *v to other code, or lets it escape.
//
//go:nocheckptr
func hidden[T any](v *T) address {
	x := uintptr(unsafe.Pointer(v))
	return *(*address)(unsafe.Pointer(&x))
}

// at returns the address of the field at offset bytes into the value.
func (at address) at(offset uintptr) address { return address{unsafe.Add(at.p, offset)} }

// load returns the T at the address, and store replaces it. This is sound because the plan ensures that
// a T, or a type with the memory layout of T, is at the address.
func load[T any](at address) T     { return *(*T)(at.p) }
func store[T any](at address, v T) { *(*T)(at.p) = v }

// pointer returns the address as a *T.
func pointer[T any](at address) *T { return (*T)(at.p) }

// value returns the addressable reflect.Value of type t at the address.
func (at address) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, at.p).Elem() }

// alloc allocates a value of type t and stores a pointer to it at the address, where a *t must be
// stored. It returns the address of the new value.
func (at address) alloc(t reflect.Type) address {
	v := reflect.New(t)
	*(*unsafe.Pointer)(at.p) = v.UnsafePointer()
	return address{v.UnsafePointer()}
}

// addressIn returns the address in pointer, which must contain a pointer.
func addressIn(pointer reflect.Value) address { return address{pointer.UnsafePointer()} }

// view returns b as a string without a copy. The string is valid until b changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// decode decodes a body into the value at the address. The type of d must be the type of the value.
// decode returns false if d refuses the body, or if there is no memory for the value.
func (at address) decode(d *jsonwire.Decoder, body []byte, l *jsonwire.Limits, r *dunlin.Request) bool {
	return d.TryAt(body, at.p, l, r)
}
