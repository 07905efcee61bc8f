package store

import (
	"math/bits"
	"slices"
)

// numbers is a hash table for the numbers of a shard, with open addressing. A service that counts per client has many
// small numbers, so a slot is small: it has 128 bits of a seeded hash of the key in place of the key. The probability
// that two of a billion keys have the same hash is 10^-20.
//
// A slot takes 32 bytes. In a table with many numbers, three to four fifths of the slots are in use (slightly fewer if
// the allocator rounded up), so a number takes 40 to 60 bytes.
//
// Invariants: at least one slot is free; every number is in the run of used slots that begins at its home slot.
type numbers struct {
	slots []numberSlot
	used  int
	next  int // the slot to check next for expiry
}

type numberKey struct{ first, second uint64 }

type numberSlot struct {
	key     numberKey
	n       int64
	expires int64 // microseconds since 1970; 0 for a free slot
}

const (
	fewestSlots = 8
	usedNum     = 4 // at most usedNum/usedDen of the slots are used
	usedDen     = 5

	// numberCost is the maximum size of a number in the table, in bytes.
	numberCost = 60
)

// find returns the slot of a key and true or, if the key is not present, the slot for it and false.
func (t *numbers) find(key numberKey) (at int, known bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	for at = t.home(key); t.slots[at].expires != 0; at = t.after(at) {
		if t.slots[at].key == key {
			return at, true
		}
	}
	return at, false
}

// home returns the slot at which the search for a key begins. It uses the highest bits of the hash, because the lowest
// bits select the shard.
func (t *numbers) home(key numberKey) int {
	hi, _ := bits.Mul64(key.first, uint64(len(t.slots)))
	return int(hi)
}

func (t *numbers) after(at int) int {
	if at++; at < len(t.slots) {
		return at
	}
	return 0
}

// add inserts a number that is not present.
func (t *numbers) add(s numberSlot) {
	if (t.used+1)*usedDen > len(t.slots)*usedNum {
		t.resize(len(t.slots) + len(t.slots)/3)
	}
	at, _ := t.find(s.key)
	t.slots[at] = s
	t.used++
}

// resize moves all numbers to a table of at least size slots.
func (t *numbers) resize(size int) {
	old := t.slots
	t.slots = slices.Grow([]numberSlot(nil), max(size, fewestSlots))
	t.slots = t.slots[:cap(t.slots)] // use the whole allocation
	clear(t.slots)
	t.used, t.next = 0, 0
	for i := range old {
		if old[i].expires != 0 {
			t.add(old[i])
		}
	}
}

// remove frees a slot. It moves a later number into the free slot if the search for that number would end there.
func (t *numbers) remove(at int) {
	for i := t.after(at); t.slots[i].expires != 0; i = t.after(i) {
		if t.distance(t.home(t.slots[i].key), i) >= t.distance(at, i) { // the home of the number is not between the free slot and its slot
			t.slots[at] = t.slots[i]
			at = i
		}
	}
	t.slots[at] = numberSlot{}
	t.used--
}

// distance returns the number of slots from one slot to another, in search order.
func (t *numbers) distance(from, to int) int {
	if to >= from {
		return to - from
	}
	return to - from + len(t.slots)
}

// sweep checks the given number of slots and removes expired numbers. It continues where the last sweep has ended. It
// returns the number of removed numbers.
func (t *numbers) sweep(slots int, now int64) (removed int) {
	for range min(slots, len(t.slots)) {
		if t.next >= len(t.slots) {
			t.next = 0
		}
		if s := &t.slots[t.next]; s.expires != 0 && s.expires <= now {
			t.remove(t.next) // remove may have moved a number here, so check the slot again
			removed++
		} else {
			t.next++
		}
	}
	return removed
}

// drop removes the numbers for whose expiry time chosen reports true. It shrinks a table with few numbers. It returns the
// number of removed numbers.
func (t *numbers) drop(chosen func(expires int64) bool) (removed int) {
	for at := 0; at < len(t.slots); {
		if s := &t.slots[at]; s.expires != 0 && chosen(s.expires) {
			t.remove(at) // remove may have moved a number here, so check the slot again
			removed++
		} else {
			at++
		}
	}
	if t.used == 0 {
		*t = numbers{}
	} else if t.used < len(t.slots)/3 {
		t.resize(t.used + t.used/2 + 1)
	}
	return removed
}
