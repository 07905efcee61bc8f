package dunlin

import "unsafe"

// viewString returns b as a string without copying it. Sound because every
// caller keeps b unchanged for as long as the string is read: the string is
// either a Response body, whose bytes nobody writes before it is sent, or lives
// in a chunk of safe strings, which is only ever appended to.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// viewBytes returns s as bytes without copying it. Sound because no caller
// writes to them, or lends them without saying that nobody may.
func viewBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// within reports whether s views memory of b. Sound because the addresses are
// only compared.
func within(s string, b []byte) bool {
	if s == "" || cap(b) == 0 {
		return false
	}
	at, start := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at >= start && at < start+uintptr(cap(b))
}

// offset returns where in b the string s begins, which must be within it.
// Sound because the addresses are only subtracted.
func offset(s string, b []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// sharesStart reports whether two strings begin at the same byte of memory.
// Sound because the addresses are only compared.
func sharesStart(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// addressOf returns where a string begins. Sound because the address is only
// compared.
func addressOf(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
