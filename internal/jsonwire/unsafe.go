package jsonwire

import (
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"
)

// This file is the only file of the package that uses unsafe. The uses are sound for the following reasons. An address of the type
// memory is made from a pointer or an interface that is live during the call. A plan was compiled from the reflect.Type of the value
// that is stored at the address. Such an address is kept only in stack frames, where the runtime adjusts it when the stack moves, or
// together with the reflect.Value of the same address.

// memory is the address of a value being read or written.
type memory struct{ p unsafe.Pointer }

// load reads the T that is stored at m. Sound because the caller's plan ensures that a T, or a type with the memory layout of T, is
// stored at m.
func load[T any](m memory) T { return *(*T)(m.p) }

// at returns the address of the field or element at offset bytes in the value at m. Sound because reflect returned the offset for the
// type of that value, so the result is inside the value.
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

// addressOf returns the address of *v; v escapes to the heap.
func addressOf[T any](v *T) memory { return memory{unsafe.Pointer(v)} }

// hidden returns the address of *v without telling the compiler that v may escape, so that v can stay on the stack of its caller. It is
// sound for these reasons. The encoder keeps no address beyond the call (see the top of the file). User code receives only copies of
// parts of *v. Between the two conversions no call happens, and only a call could move the stack.
//
// The memory to which *v points must be on the heap; Append ensures this. The race detector's check of pointers would be a call between
// the conversions, so the check is disabled here.
//
//go:nocheckptr
func hidden[T any](v *T) memory {
	x := uintptr(unsafe.Pointer(v))
	return *(*memory)(unsafe.Pointer(&x))
}

// emptyInterface is the memory layout of a value of type any.
type emptyInterface struct{ typ, data unsafe.Pointer }

// typeID identifies a type by the address of its descriptor, and keeps the descriptor alive. The zero typeID identifies no type.
type typeID struct{ p unsafe.Pointer }

// typeOf returns the identity of v's dynamic type. Sound because the first word of an any is its type.
func typeOf(v any) typeID { return typeID{(*emptyInterface)(unsafe.Pointer(&v)).typ} }

// hash spreads the addresses of descriptors, which are aligned and close together. It multiplies the address by 2^64/φ, where φ is the
// golden ratio, and returns the upper 32 bits of the 64-bit product.
func (t typeID) hash() uintptr {
	return uintptr(uint64(uintptr(t.p)) * 0x9E3779B97F4A7C15 >> 32)
}

// held returns the address of the value that the interface *v contains. direct reports whether the interface stores the value itself as
// its data word; then the result is an address inside *v. Sound because isDirect tests how the runtime stores the type.
func held(v *any, direct bool) memory {
	e := (*emptyInterface)(unsafe.Pointer(v))
	if direct {
		return hidden(&e.data)
	}
	return memory{e.data}
}

// holdsDirectly reports whether the data word of v is the pointer word, and not an address at which word is stored.
func holdsDirectly(v any, word *byte) bool {
	return (*emptyInterface)(unsafe.Pointer(&v)).data == unsafe.Pointer(word)
}

// pointerTo returns (*T)(m) as an interface value. pointer is the identity of *T. Sound because an interface stores a pointer as its
// data word, and a T is stored at m.
func pointerTo(pointer typeID, m memory) any {
	e := emptyInterface{typ: pointer.p, data: m.p}
	return *(*any)(unsafe.Pointer(&e))
}

// boxed returns the interface that contains *v. t is the identity of T. Sound because the data word of an interface that contains a
// number or a string is an address, which may be inside an allocation, and because *v is not written again.
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

// store writes v to m. Sound because the caller's plan ensures that a T, or a type with the memory layout of T, is stored at m. The
// assignment uses the write barriers of T, and types with the same layout have pointers at the same offsets.
func store[T any](m memory, v T) { *(*T)(m.p) = v }

// nilPointer is the value to store where a pointer, a map or an interface becomes nil.
var nilPointer unsafe.Pointer

// pointerAt returns a pointer to the T that is stored at m. Sound for the same reason as load.
func pointerAt[T any](m memory) *T { return (*T)(m.p) }

// sliceHeader is the memory layout of a slice of any type.
type sliceHeader struct {
	array    unsafe.Pointer
	len, cap int
}

// header returns the header of the slice that is stored at m. Sound because all slices share one layout. Callers that change len must
// keep 0 ≤ len ≤ cap.
func (m memory) header() *sliceHeader { return (*sliceHeader)(m.p) }

// first returns the address of the first element. The capacity of the slice must be at least one.
func (h *sliceHeader) first() memory { return memory{h.array} }

// growSlice makes room for n more elements in the slice that is stored at m. The slice has the type t, and o is the operation that
// reads its elements. The new elements are zero. Slices of strings are frequent and have their own code path, which is sound because
// all string types have the same layout.
func growSlice(t reflect.Type, o op, m memory, n int) {
	if o != opString {
		valueAt(t, m).Grow(n)
		return
	}
	s := pointerAt[[]string](m)
	*s = slices.Grow(*s, n)
}

// heldPointer returns the pointer that v contains. The caller has checked the type of v. Sound because an interface stores a pointer as
// its data word.
func heldPointer(v any) memory { return memory{(*emptyInterface)(unsafe.Pointer(&v)).data} }

// viewedBytes returns the bytes of s without a copy. Sound because no caller writes to the result or retains it.
func viewedBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// storeWord writes the pointer-shaped word stored at src to dst. Sound because
// both hold a value of the same pointer-shaped type.
func storeWord(dst, src memory) { *(*unsafe.Pointer)(dst.p) = *(*unsafe.Pointer)(src.p) }

// word64 returns the eight bytes of s at i, little endian. Sound because the caller has checked that 0 ≤ i and i+8 ≤ len(s).
func word64(s string, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))[:])
}

// word32 returns the four bytes of s at i, little endian. Sound because the caller has checked that 0 ≤ i and i+4 ≤ len(s).
func word32(s string, i int) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))[:])
}

// putWord64 writes the eight bytes of w to b at i, little endian. Sound because the caller has checked that 0 ≤ i and i+8 ≤ len(b).
func putWord64(b []byte, i int, w uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))[:], w)
}

// putWord32 writes the four bytes of w to b at i, little endian. Sound because the caller has checked that 0 ≤ i and i+4 ≤ len(b).
func putWord32(b []byte, i int, w uint32) {
	binary.LittleEndian.PutUint32((*[4]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))[:], w)
}

// bytesString returns the bytes of b as a string without a copy. Sound because b is not changed while the result is in use.
func bytesString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// valueAt returns the addressable reflect.Value of the t at m.
func valueAt(t reflect.Type, m memory) reflect.Value { return reflect.NewAt(t, m.p).Elem() }

// memoryOf returns the address in v, which must contain a pointer or a slice.
func memoryOf(v reflect.Value) memory { return memory{v.UnsafePointer()} }

// TryAt is Try for callers without a typed pointer. p is the address of a value of the decoder's type. l must be a result of
// Limits.Filled. Sound because the caller ensures the type of the value, which is all that Try checks.
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
