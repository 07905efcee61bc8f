package jsonwire

import (
	"maps"
	"math"
	"math/bits"
	"reflect"
)

// A few bytes of JSON can need hundreds of bytes of memory: an empty object becomes a struct, a map or an interface. A decoder
// therefore counts the bytes that it allocates and reserves them.

// A Room reserves memory for decoded values. If a decoder has no Room, only the Limits apply.
type Room interface {
	// ReserveMemory reserves n more bytes. It returns an error if they are not available; the decoder then refuses the text.
	ReserveMemory(n int64) error
}

// A decoded value may use freeBytes plus freeTimes the length of its text, but at most freeMost, without a reservation. Strings are not
// counted. These bytes need no reservation, because ordinary texts are decoded one after the other and their values soon become
// garbage. roomStep is the minimum size of a reservation. Sizes are in bytes.
const (
	freeBytes = 16 << 10
	freeTimes = 4
	freeMost  = 4 << 20
	roomStep  = 64 << 10
)

// free returns the number of bytes that the value of a text of n bytes may use without a reservation.
func free(n int) int { return min(freeBytes+freeTimes*n, freeMost) }

// The following constants are the sizes of parts of decoded values, in bytes, as the allocator rounds them on 64-bit systems. Strings
// are not counted, because they need at most the length of the text.
const (
	numberBox     = 8  // number in an interface
	stringBox     = 16 // string header in an interface
	sliceBox      = 24 // slice header in an interface
	interfaceSize = 16
	mapHead       = 48 // empty map
	firstSlots    = 8  // number of members of the first group of a map
	anySlot       = stringBox + interfaceSize + 1
	maxInSlot     = 128 // maximum size of a key or value in a slot; a larger key or value has its own allocation
	allocated     = 8   // average number of bytes by which the allocator rounds up a small allocation
	zoneBytes     = 208 // size of the time.Location for an offset
	slotsOfMany   = 2   // slots per member of a large map: half of them are free after the map has grown
)

// slotOf returns the memory of a key or value of type t in a map, in bytes. It includes the separate allocation of a large key or
// value.
func slotOf(t reflect.Type) int {
	size := int(t.Size())
	if size > maxInSlot {
		return size + bits.UintSize/8
	}
	return size
}

// charge counts n bytes that will be allocated. It returns false if d.room has no memory for them.
func (d *decoder) charge(n int) bool {
	d.free -= n
	return d.free >= 0 || d.reserve()
}

// chargeMany charges n values of size bytes each, like the method charge.
func (d *decoder) chargeMany(n int, size uintptr) bool {
	if size > 0 && n > math.MaxInt/2/int(size) {
		return d.charge(math.MaxInt / 2)
	}
	return d.charge(n * int(size))
}

// chargeRaw charges a value that is made from raw, a JSON text: either a copy of the text, or a time.
func (d *decoder) chargeRaw(p *decodePlan, raw []byte) bool {
	switch {
	case p.op != opTime:
		return d.charge(len(raw) + allocated)
	case len(raw) > 2 && raw[len(raw)-2] != 'Z':
		return d.charge(zoneBytes)
	}
	return true
}

// chargeEntry charges one more entry of a map that has n entries, like the method charge. slot is the memory of an entry in bytes.
func (d *decoder) chargeEntry(n, slot int) bool {
	switch {
	case n == 0:
		slot *= firstSlots
	case n < firstSlots:
		return true
	default:
		slot *= slotsOfMany
	}
	return d.charge(slot)
}

// A mapRoom records how much memory of a map has been counted.
type mapRoom struct {
	members int  // number of members for which memory has been counted; 0 if each member is counted separately
	fixed   bool // the map must not be replaced, because the caller refers to it
}

// chargeMember charges one more member of a map, like the method charge. Position i is in this member or directly after it. If the map
// has countedFrom members, chargeMember counts the remaining members in the text and charges all of them together. If they are many, it
// replaces the map by a map with room for all of them.
func chargeMember[V any](d *decoder, made *map[string]V, r *mapRoom, i int) bool {
	n := len(*made)
	switch {
	case n < r.members:
		return true
	case n < countedFrom || r.fixed:
		return d.chargeEntry(n, anySlot)
	}
	r.members = n + 1 + d.ahead(i, len(`"":1,`))
	if !d.chargeMany((r.members-n)*slotsOfMany, anySlot) {
		return false
	}
	if r.members > n+n/2 {
		larger := make(map[string]V, r.members)
		maps.Copy(larger, *made)
		*made = larger
	}
	return true
}

// reserve makes d.free positive again: it reserves the missing bytes, and at least roomStep bytes in advance.
func (d *decoder) reserve() bool {
	if d.room == nil {
		d.free = math.MaxInt
		return true
	}
	n := max(roomStep, len(d.data)/4) - d.free
	if d.room.ReserveMemory(int64(n)) != nil {
		return false
	}
	d.free += n
	return true
}
