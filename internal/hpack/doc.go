// Package hpack turns the field blocks of HTTP/2 into fields and fields into
// blocks (RFC 7541). It does no I/O, starts no goroutine and keeps no global
// state that changes.
//
//	integer.go    integers with a prefix         huffman.go   strings in fewer bits
//	static.go     the static table               table.go     the dynamic table
//	decode.go     a block as fields              list.go      fields, read from a block
//	encode.go     fields as a block              errors.go    what a block may be refused for
//
// A [Decoder] reads one complete block into a [List]. The list has the bytes of
// its fields in memory of its own: a dynamic table evicts what it has lent, and
// the buffer that a block lies in is used again. Views into a list are valid
// until the list is reset or decoded into again.
//
// Strings are looked at once: what the package above makes of a field, its
// [Class], is found when the field comes as a literal, stays with the entry of
// the dynamic table, and comes back with each mention of it.
//
// Three bounds hold whatever a peer sends. The dynamic table takes no more
// memory than the size that was announced, and takes it as it fills. The list
// keeps no more than its limits say; what goes beyond is decoded, because the
// table must follow, and forgotten. A block that expands beyond all measure is
// an error.
package hpack
