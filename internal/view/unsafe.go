// Package view converts between bytes and strings without a copy, and compares the addresses of strings. The request
// and response path uses no other unsafe code.
package view

import "unsafe"

// String returns b as a string that shares its memory. This is sound because every caller leaves b unchanged while the string is
// used: b is the body of an answer, which does not change before it is sent, or memory of exchange.Strings, which is only
// appended to, or a text that is being checked.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns the bytes of s without a copy. This is sound because no caller writes to them, and callers that pass them on
// document that they are read-only.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Within reports whether s is part of the memory of b. This is sound because addresses are only compared.
func Within(s string, b []byte) bool {
	if s == "" || cap(b) == 0 {
		return false
	}
	at, start := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at >= start && at < start+uintptr(cap(b))
}

// Offset returns the offset of s in b. s must be a part of b. This is sound because addresses are only subtracted.
func Offset(s string, b []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// SharesStart reports whether two strings begin at the same address. This is sound because addresses are only
// compared.
func SharesStart(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// AddressOf returns the address of a string. This is sound because callers only compare the address.
func AddressOf(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
