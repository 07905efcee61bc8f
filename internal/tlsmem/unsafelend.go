//go:build !go1.28

package tlsmem

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn reads records into a buffer of its own, which never shrinks (golang/go#43563), and decrypts them there. If this
// buffer is replaced by memory that already holds the records, crypto/tls copies nothing, and an idle connection has no such
// buffer.
//
// Soundness: the fields are found by name and must have the expected types, otherwise this file
// changes nothing. Tests pin the way in which crypto/tls uses the fields, and this file is not
// built with unknown releases of Go. The fields belong to the goroutine that reads from the
// tls.Conn. That goroutine is the caller, since only one goroutine at a time uses a Conn.

// inputs are the input fields of a tls.Conn.
type inputs struct {
	raw   *bytes.Buffer // records
	plain *bytes.Reader // plaintext of the last record, in the memory of the record
	hand  *bytes.Buffer // handshake messages
}

var rawAt, plainAt, handAt, found = findInputs(reflect.TypeFor[tls.Conn]())

func findInputs(conn reflect.Type) (raw, plain, hand uintptr, found bool) {
	at := func(name string, of reflect.Type) uintptr {
		field, has := conn.FieldByName(name)
		found = found && has && field.Type == of && len(field.Index) == 1
		return field.Offset
	}
	found = true
	raw = at("rawInput", reflect.TypeFor[bytes.Buffer]())
	plain = at("input", reflect.TypeFor[bytes.Reader]())
	hand = at("hand", reflect.TypeFor[bytes.Buffer]())
	return raw, plain, hand, found
}

// inputsOf returns the input fields of conn, or false if they do not have the expected types.
func inputsOf(conn *tls.Conn) (in inputs, known bool) {
	if !found {
		return inputs{}, false
	}
	at := unsafe.Pointer(conn)
	return inputs{
		raw:   (*bytes.Buffer)(unsafe.Add(at, rawAt)),
		plain: (*bytes.Reader)(unsafe.Add(at, plainAt)),
		hand:  (*bytes.Buffer)(unsafe.Add(at, handAt)),
	}, true
}
