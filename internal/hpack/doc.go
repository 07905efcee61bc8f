// Package hpack decodes and encodes the field blocks of HTTP/2 (RFC 7541). It does no I/O, starts no goroutine and has no
// mutable global state.
//
//	integer.go    integers with a prefix         huffman.go   strings in Huffman code
//	static.go     the static table               table.go     the dynamic table
//	decode.go     a block as fields              list.go      fields, read from a block
//	encode.go     fields as a block              errors.go    reasons to refuse a block
//
// A [Decoder] decodes complete blocks into a [List]. The list contains copies of its fields, because the dynamic table evicts
// entries and the buffer of the block is reused. Views into a list are valid until the list is reset or used again.
//
// Each field has a [Class], which the importing package defines. The class is computed when the field arrives as a literal.
// If the field enters the dynamic table, its entry keeps the class for later references.
//
// Three bounds hold for any input. The dynamic table occupies at most the announced size, and is allocated as it fills. The
// list stores only as many fields as its limits allow; further fields are decoded, because the table must stay in sync, and
// are not stored. A block that exceeds MaxWork is an error.
package hpack
