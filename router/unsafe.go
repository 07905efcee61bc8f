package router

import "unsafe"

// view returns the bytes of b as a string without copying them. This is sound if b is not changed while the string is in
// use. Callers pass memory of their own, and do not use the string after they have reused that memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
