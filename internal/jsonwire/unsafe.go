package jsonwire

import (
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"
)

// This file is the package's only use of unsafe. It is sound for the following reasons. A memory is made from a pointer or an
// interface that is live during the call. The plan was compiled from the reflect.Type of the stored value. A memory is kept
// only in stack frames, where the runtime adjusts it when the stack moves, or together with the reflect.Value that it points
// to.

// memory is the address of a value being read or written.
type memory struct{ p unsafe.Pointer }

// load reads the T stored at m. Sound because, according to the caller's plan, a T or a type with the same memory layout is
// stored there.
func load[T any](m memory) T { return *(*T)(m.p) }

// at returns the field or element at offset bytes in m. Sound because the offset comes from reflect for the type stored at m,
// so the result is inside it.
func (m memory) at(offset uintptr) memory { return memory{unsafe.Add(m.p, offset)} }

// deref follows the pointer-shaped word stored at m (a pointer, a map, the
// first word of an interface). Sound because every such word is a pointer.
func (m memory) deref() memory { return memory{*(*unsafe.Pointer)(m.p)} }

// isNil reports whether the pointer-shaped word stored at m is nil.
func (m memory) isNil() bool { return *(*unsafe.Pointer)(m.p) == nil }

// slice reads the header of the slice stored at m, of any element type. Sound because all slices have the header layout of
// []struct{}.
func (m memory) slice() (first memory, n int) {
	s := *(*[]struct{})(m.p)
	return memory{unsafe.Pointer(unsafe.SliceData(s))}, len(s)
}

// addressOf returns the address of *v; v escapes.
func addressOf[T any](v *T) memory { return memory{unsafe.Pointer(v)} }

// hidden returns the memory of *v, hidden from escape analysis so that v may stay on its caller's stack. Sound because the
// encoder keeps no memory beyond the call (see the top of the file), user code only receives copies of parts of *v, and no
// call that could move the stack is between the two conversions. This does not include memory that *v points to, which must
// be on the heap; Append ensures this. Pointers are not checked in builds with the race detector, because the check is such a
// call.
//
//go:nocheckptr
func hidden[T any](v *T) memory {
	x := uintptr(unsafe.Pointer(v))
	return *(*memory)(unsafe.Pointer(&x))
}

// emptyInterface is the memory layout of a value of type any.
type emptyInterface struct{ typ, data unsafe.Pointer }

// typeID identifies a type by the address of its descriptor, and keeps the descriptor alive. Zero is not a type.
type typeID struct{ p unsafe.Pointer }

// typeOf returns the identity of v's dynamic type. Sound because the first word of an any is its type.
func typeOf(v any) typeID { return typeID{(*emptyInterface)(unsafe.Pointer(&v)).typ} }

// hash spreads descriptor addresses, which are aligned and close together: it is the upper half of the product with 2^64 over
// the golden ratio.
func (t typeID) hash() uintptr {
	return uintptr(uint64(uintptr(t.p)) * 0x9E3779B97F4A7C15 >> 32)
}

// held returns the memory of the value that *v holds. direct means that the data word is the value itself rather than its
// address; the result then points into *v. Sound because isDirect tests the runtime's behaviour.
func held(v *any, direct bool) memory {
	e := (*emptyInterface)(unsafe.Pointer(v))
	if direct {
		return hidden(&e.data)
	}
	return memory{e.data}
}

// holdsDirectly reports whether v's data word is word itself, not its address.
func holdsDirectly(v any, word *byte) bool {
	return (*emptyInterface)(unsafe.Pointer(&v)).data == unsafe.Pointer(word)
}

// pointerTo returns the interface value (*T)(m), given the identity of *T.
// Sound because a pointer is its own data word and a T is stored at m.
func pointerTo(pointer typeID, m memory) any {
	e := emptyInterface{typ: pointer.p, data: m.p}
	return *(*any)(unsafe.Pointer(&e))
}

// boxed returns the interface that holds *v, given the identity of T. Sound because the data word of an interface with a
// number or a string is its address, which may lie within an allocation, and because *v is not written again.
func boxed[T float64 | string](t typeID, v *T) any {
	e := emptyInterface{typ: t.p, data: unsafe.Pointer(v)}
	return *(*any)(unsafe.Pointer(&e))
}

// loadInterface reads the interface stored at m as an any. Sound because all
// interfaces with methods share one layout, that of interface{ M() }.
func loadInterface(m memory, methods bool) any {
	if methods {
		return *(*interface{ M() })(m.p)
	}
	return *(*any)(m.p)
}

// store writes v to m. Sound because, according to the caller's plan, a T or a type with the same memory layout is stored
// there. The assignment has the write barriers of its type, and types with the same layout have pointers at the same offsets.
func store[T any](m memory, v T) { *(*T)(m.p) = v }

// nilPointer is stored where a pointer-shaped word becomes nil.
var nilPointer unsafe.Pointer

// pointerAt returns the pointer to the T stored at m. Sound as load is.
func pointerAt[T any](m memory) *T { return (*T)(m.p) }

// sliceHeader is the memory layout of a slice of any type.
type sliceHeader struct {
	array    unsafe.Pointer
	len, cap int
}

// header returns the header of the slice stored at m. Sound because all slices share one layout; callers that change len
// keep 0 ≤ len ≤ cap.
func (m memory) header() *sliceHeader { return (*sliceHeader)(m.p) }

// first returns the address of the first element of a slice that has room for one.
func (h *sliceHeader) first() memory { return memory{h.array} }

// growSlice makes room for n more elements after the slice that is stored at m, of type t with elements that are read by o.
// The new elements are zero. Strings are frequent and have their own code path, which is sound because all strings have the
// same layout.
func growSlice(t reflect.Type, o op, m memory, n int) {
	if o != opString {
		valueAt(t, m).Grow(n)
		return
	}
	s := pointerAt[[]string](m)
	*s = slices.Grow(*s, n)
}

// heldPointer returns the pointer that v holds, to the type that v's caller has checked. Sound because a pointer is an interface's data
// word itself.
func heldPointer(v any) memory { return memory{(*emptyInterface)(unsafe.Pointer(&v)).data} }

// viewedBytes returns a view of s as bytes. Sound because no code writes to them or retains them.
func viewedBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// storeWord writes the pointer-shaped word stored at src to dst. Sound because
// both hold a value of the same pointer-shaped type.
func storeWord(dst, src memory) { *(*unsafe.Pointer)(dst.p) = *(*unsafe.Pointer)(src.p) }

// word64 returns the eight bytes of s at i, little endian. Sound because the caller has checked that 0 ≤ i and i+8 ≤ len(s).
func word64(s string, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))[:])
}

// word32 returns the four bytes of s at i, see word64.
func word32(s string, i int) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))[:])
}

// putWord64 writes w to the eight bytes of b from i on. The caller has checked
// that 0 ≤ i and i+8 ≤ len(b), which makes it sound.
func putWord64(b []byte, i int, w uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))[:], w)
}

// putWord32 writes w to the four bytes of b from i on, see putWord64.
func putWord32(b []byte, i int, w uint32) {
	binary.LittleEndian.PutUint32((*[4]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))[:], w)
}

// bytesString returns a view of b as a string. Sound because b is not written to while the view is in use, and the view is not
// retained.
func bytesString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// valueAt returns the addressable reflect.Value of the t at m.
func valueAt(t reflect.Type, m memory) reflect.Value { return reflect.NewAt(t, m.p).Elem() }

// memoryOf returns the address that the pointer in v points to.
func memoryOf(v reflect.Value) memory { return memory{v.UnsafePointer()} }

// TryAt is Try for callers without a typed pointer: p is the address of a value of the decoder's type, and l has no zero
// fields. Sound because Try ensures no more than that.
func (d *Decoder) TryAt(data []byte, p unsafe.Pointer, l *Limits, room Room) bool {
	if len(data) >= largeText {
		defer releaseSlot(acquireSlot())
	}
	run := decoder{limits: *l, data: data, depth: l.MaxDepth, elements: l.MaxElements, room: room, free: free(len(data))}
	i := skipSpace(data, 0)
	if d.plan.op != opStruct || i == len(data) || data[i] != '{' {
		return run.text(d.plan, memory{p}) >= 0
	}
	i = run.object(d.plan, memory{p}, i) // faster than a call of value
	return i >= 0 && skipSpace(data, i) == len(data)
}
