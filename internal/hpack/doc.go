// Package hpack turns the field blocks of HTTP/2 into fields and fields into
// blocks (RFC 7541). It does no I/O, starts no goroutine and keeps no global
// state that changes.
//
//	integer.go    integers with a prefix         huffman.go   strings in fewer bits
//	static.go     the static table               table.go     the dynamic table
//	decode.go     a block as fields              list.go      fields, read from a block
//	encode.go     fields as a block              errors.go    reasons to refuse a block
//
// A [Decoder] reads one complete block into a [List]. The list has the bytes of
// its fields in its own memory, since the dynamic table evicts entries and the
// buffer of the block is reused. Views into a list are valid until the list is
// reset or decoded into again.
//
// Strings are classified once: the [Class] of a field, defined by the importing
// package, is computed when the field arrives as a literal. The entry of the
// dynamic table keeps it for later references.
//
// Three bounds hold whatever a peer sends. The dynamic table takes no more
// memory than the announced size, and allocates it as it fills. The list keeps
// no more than its limits allow; further fields are decoded, to keep the table
// in sync, and dropped. A block that exceeds MaxWork is an error.
package hpack
