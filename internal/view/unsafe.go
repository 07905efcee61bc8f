// Package view looks at bytes as strings and the other way around, without a copy, and
// compares where strings lie. All of the core that is about requests and answers does so
// by it.
package view

import "unsafe"

// String returns b as a string without copying it. Sound because every
// caller keeps b unchanged for as long as the string is read: the string is
// either the body of an answer, whose bytes nobody writes before it is sent, or lives
// among safe strings (exchange.Strings), which is only ever appended to.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns s as bytes without copying it. Sound because no caller
// writes to them, or lends them without saying that nobody may.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Within reports whether s views memory of b. Sound because the addresses are
// only compared.
func Within(s string, b []byte) bool {
	if s == "" || cap(b) == 0 {
		return false
	}
	at, start := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at >= start && at < start+uintptr(cap(b))
}

// Offset returns where in b the string s begins, which must be within it.
// Sound because the addresses are only subtracted.
func Offset(s string, b []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// SharesStart reports whether two strings begin at the same byte of memory.
// Sound because the addresses are only compared.
func SharesStart(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// AddressOf returns where a string begins. Sound because the address is only
// compared.
func AddressOf(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
