package prefetch

import "unsafe"

// Value asks for the memory of *v, whose pointers it does not follow.
//
// Soundness: an address is made of v, and nothing is read from it or written to it; see [At].
func Value[T any](v *T) { At(uintptr(unsafe.Pointer(v)), Lines(unsafe.Sizeof(*v))) }
