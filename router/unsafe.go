package router

import "unsafe"

// view returns b's bytes as a string without copying. Sound as long as b is not written to while the
// string is in use: callers pass scratch space that is theirs alone and drop the string before reusing it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
