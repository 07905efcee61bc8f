package router

import "unsafe"

// view returns b's bytes as a string without copying. This is sound if b is not written to while the string is in use:
// callers pass their own scratch memory and drop the string before they reuse it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
