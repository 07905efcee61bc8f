//go:build !go1.28

package tlsmem

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn reads records into a buffer of its own, which never shrinks (golang/go#43563), and opens them
// there. Lent what lies in memory anyway, it copies nothing, and an idle connection holds no such buffer.
//
// Soundness: the fields are found by their names, and have the types that are asked for, or nothing of this is
// done. What crypto/tls does with them is pinned by tests, and a release of Go that is not known is not built with this file.
// The fields belong to who reads from the tls.Conn, and that is who calls: a Conn is used by one goroutine at a time.

// inputs are the fields of a tls.Conn that have to do with input.
type inputs struct {
	raw   *bytes.Buffer // records
	plain *bytes.Reader // what the last of them carried, where it lies
	hand  *bytes.Buffer // messages of the handshake
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

// inputsOf returns those of conn, unless they are not as they should be.
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
