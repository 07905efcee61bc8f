package router

import "unsafe"

// view returns the bytes of b as a string without copying. This is sound if b is not written to while the string is in use:
// callers pass their own scratch memory and do not use the string after they reuse the memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
