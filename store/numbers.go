package store

import (
	"math/bits"
	"slices"
)

// numbers is a hash table of the numbers of a shard, with open addressing. What counts many clients has many of them, and
// little is known of each, so they take as little as they can: a slot has no key, which may be long, but 128 bits of a hash of it that nobody outside
// can foresee. Two keys of a billion have the same once in 10^20 tables.
//
// A slot takes 32 bytes. Three to four fifths of them are in use once there are some, or a few less where the allocator has given more: a number
// takes 40 to 60 bytes.
//
// Invariant: at least one slot is free, and every number lies in the run of slots in use that begins at its home.
type numbers struct {
	slots []numberSlot
	used  int
	next  int // the slot that is looked at next for what has expired
}

type numberKey struct{ first, second uint64 }

type numberSlot struct {
	key     numberKey
	n       int64
	expires int64 // microseconds since 1970; 0: the slot is free
}

const (
	fewestSlots = 8
	usedNum     = 4 // four fifths of the slots may be in use
	usedDen     = 5

	// numberCost is what a number takes, in bytes, at most.
	numberCost = 60
)

// find returns the slot of a key, or reports that it is not there.
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

// home is where the run begins in which a key is looked for. The lowest bits of the hash have chosen the shard.
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

// add puts in what is not there.
func (t *numbers) add(s numberSlot) {
	if (t.used+1)*usedDen > len(t.slots)*usedNum {
		t.resize(len(t.slots) + len(t.slots)/3)
	}
	at, _ := t.find(s.key)
	t.slots[at] = s
	t.used++
}

// resize moves all to so many slots, or a few more.
func (t *numbers) resize(size int) {
	old := t.slots
	t.slots = slices.Grow([]numberSlot(nil), max(size, fewestSlots))
	t.slots = t.slots[:cap(t.slots)] // all that was allocated
	clear(t.slots)
	t.used, t.next = 0, 0
	for i := range old {
		if old[i].expires != 0 {
			t.add(old[i])
		}
	}
}

// remove frees a slot, and moves those behind it up that could not be found otherwise.
func (t *numbers) remove(at int) {
	for i := t.after(at); t.slots[i].expires != 0; i = t.after(i) {
		if t.distance(t.home(t.slots[i].key), i) >= t.distance(at, i) { // its home is not between the gap and it
			t.slots[at] = t.slots[i]
			at = i
		}
	}
	t.slots[at] = numberSlot{}
	t.used--
}

// distance is how many slots a run goes on from one slot to another.
func (t *numbers) distance(from, to int) int {
	if to >= from {
		return to - from
	}
	return to - from + len(t.slots)
}

// sweep looks at so many slots, each time at the next ones, removes those that have expired, and returns how many these were.
func (t *numbers) sweep(slots int, now int64) (removed int) {
	for range min(slots, len(t.slots)) {
		if t.next >= len(t.slots) {
			t.next = 0
		}
		if s := &t.slots[t.next]; s.expires != 0 && s.expires <= now {
			t.remove(t.next) // another one may lie there now, and is looked at next
			removed++
		} else {
			t.next++
		}
	}
	return removed
}

// drop removes those whose end is chosen, and returns how many these were. Where few are left, so are slots.
func (t *numbers) drop(chosen func(expires int64) bool) (removed int) {
	for at := 0; at < len(t.slots); {
		if s := &t.slots[at]; s.expires != 0 && chosen(s.expires) {
			t.remove(at) // another one may lie there now
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
