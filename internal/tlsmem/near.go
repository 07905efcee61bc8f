package tlsmem

import (
	"crypto/tls"
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/prefetch"
)

// To open or seal a record, crypto/tls uses memory in about a dozen places: the tls.Conn, and for
// each direction the cipher with its keys. Their addresses are recorded once, so that all can be
// prefetched together.

// near has the addresses at the end of the handshake. They may be outdated, since keys change.
type near struct {
	at    [5]uintptr
	lines [5]uint8
}

// mostNear limits the prefetched size of one place, in bytes. Keys are shorter.
const mostNear = 1 << 10

// add records the target of the pointer v, and the targets of interfaces in it.
func (n *near) add(v reflect.Value) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	for i := range n.at {
		if n.at[i] == 0 {
			n.at[i], n.lines[i] = v.Pointer(), uint8(prefetch.Lines(min(v.Type().Elem().Size(), mostNear)))
			break
		}
	}
	if v = v.Elem(); v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if field := v.Field(i); field.Kind() == reflect.Interface {
				n.add(field)
			}
		}
	}
}

// nearOf returns the places of a tls.Conn after its handshake. It omits fields that the tls.Conn
// does not have.
func nearOf(conn *tls.Conn) (n near) {
	v := reflect.ValueOf(conn)
	n.at[0], n.lines[0] = v.Pointer(), uint8(prefetch.Lines(v.Type().Elem().Size()))
	for _, direction := range []string{"in", "out"} {
		if half := v.Elem().FieldByName(direction); half.Kind() == reflect.Struct {
			if cipher := half.FieldByName("cipher"); cipher.Kind() == reflect.Interface {
				n.add(cipher)
			}
		}
	}
	return n
}

// Prefetch prefetches the memory that a Read and a Seal use.
func (c *Conn) Prefetch() {
	for i, at := range c.near.at {
		if at != 0 {
			prefetch.At(at, int(c.near.lines[i]))
		}
	}
}
