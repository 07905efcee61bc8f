package tlsmem

import (
	"crypto/tls"
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/prefetch"
)

// A record is opened and sealed with memory in some dozen places: the tls.Conn, and for each direction what it
// seals by, with its keys. Where they lie is noted once, so that all can be asked for together.

// near says where they lie, but not that they do any more: keys change.
type near struct {
	at    [5]uintptr
	lines [5]uint8
}

// mostNear bounds what one of them is, in bytes: keys are shorter.
const mostNear = 1 << 10

// add notes what v points to, and what interfaces in that point to.
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

// nearOf returns what is near a tls.Conn that has shaken hands: less if that has no such fields.
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

// Prefetch asks the processor for what a Read and a Seal need.
func (c *Conn) Prefetch() {
	for i, at := range c.near.at {
		if at != 0 {
			prefetch.At(at, int(c.near.lines[i]))
		}
	}
}
