package hpack

import (
	"math/bits"
	"slices"
)

// entryOverhead is the size of an entry beyond its text (RFC 7541 §4.1).
const entryOverhead = 32

// MaxTableSize is the largest dynamic table there can be, in the bytes that RFC
// 7541 §4.1 counts.
const MaxTableSize = 1<<16 - 1

// table is a dynamic table (RFC 7541 §2.3.2): a queue of entries in a ring, and
// their text in one piece in the same order.
//
//	buf:  │ evicted │ oldest … newest │ free │
//	                ↑ entries[first].at
//
// Text is moved to the front when the free space does not suffice. Both grow as
// the table fills, and no further than max can need.
//
// Invariants: size ≤ max; the text of the entries is consecutive and ends at
// len(buf); len(entries) is 0 or a power of two.
type table struct {
	buf     []byte
	entries []entry
	first   uint32 // number of the oldest entry since the beginning
	count   uint32
	size    uint32 // size as defined by RFC 7541 §4.1
	max     uint32
}

// An entry has its text at buf[at:]: its name, unless entry index of the static table has that name, and its value.
type entry struct {
	at          uint16
	name, value uint16 // lengths
	class       Class
	index       uint8
}

// text returns how many bytes of the buffer the entry has.
func (e *entry) text() int {
	if e.index != 0 {
		return int(e.value)
	}
	return int(e.name) + int(e.value)
}

func (e *entry) size() uint32 { return uint32(e.name) + uint32(e.value) + entryOverhead }

// get returns the entry with an index of the dynamic table, from 0 for the newest,
// nil when there is none.
func (t *table) get(i uint32) *entry {
	if i >= t.count {
		return nil
	}
	return &t.entries[(t.first+t.count-1-i)&uint32(len(t.entries)-1)]
}

// setMax changes the size that the table may have.
func (t *table) setMax(n uint32) {
	t.max = n
	t.evict(n)
	if n == 0 {
		t.buf, t.entries, t.first = nil, nil, 0
	}
}

// evict removes the oldest entries until at most limit bytes remain.
func (t *table) evict(limit uint32) {
	for t.size > limit {
		t.size -= t.entries[t.first&uint32(len(t.entries)-1)].size()
		t.first++
		t.count--
	}
	if t.count == 0 {
		t.buf = t.buf[:0]
	}
}

// add copies e's text, adds e as the newest entry, and evicts entries to make room. An entry larger than the table
// empties it (RFC 7541 §4.4).
func (t *table) add(e entry, name, value []byte) {
	size := uint32(len(name)) + uint32(len(value)) + entryOverhead
	if size > t.max {
		t.evict(0)
		return
	}
	t.evict(t.max - size)
	e.name, e.value = uint16(len(name)), uint16(len(value))
	if int(t.count) == len(t.entries) {
		t.growEntries()
	}
	t.makeRoom(e.text())
	e.at = uint16(len(t.buf))
	if e.index == 0 {
		t.buf = append(t.buf, name...)
	}
	t.buf = append(t.buf, value...)
	t.entries[(t.first+t.count)&uint32(len(t.entries)-1)] = e
	t.count++
	t.size += size
}

// makeRoom makes room for n more bytes of text.
func (t *table) makeRoom(n int) {
	if cap(t.buf)-len(t.buf) >= n {
		return
	}
	start := len(t.buf)
	if t.count > 0 {
		start = int(t.entries[t.first&uint32(len(t.entries)-1)].at)
	}
	live := t.buf[start:]
	most := int(t.max)
	if need := len(live) + n; need > cap(t.buf)/2 && cap(t.buf) < most {
		// Nothing else refers to the old buffer: lists have copies.
		t.buf = append(make([]byte, 0, min(most, max(2*cap(t.buf), need, 256))), live...)
	} else {
		t.buf = t.buf[:copy(t.buf[:cap(t.buf)], live)]
	}
	for i := range t.count {
		t.entries[(t.first+i)&uint32(len(t.entries)-1)].at -= uint16(start)
	}
}

// growEntries doubles the ring.
func (t *table) growEntries() {
	t.moveEntries(max(8, 2*len(t.entries)))
}

// moveEntries makes a ring of n, a power of two.
func (t *table) moveEntries(n int) {
	other := make([]entry, n)
	for i := range t.count {
		other[i] = t.entries[(t.first+i)&uint32(len(t.entries)-1)]
	}
	t.entries, t.first = other, 0
}

// footprint returns how many bytes of memory the table has.
func (t *table) footprint() int { return cap(t.buf) + cap(t.entries)*entrySize }

const entrySize = 10

// textOf returns the text of an entry.
func (t *table) textOf(e *entry) []byte { return t.buf[e.at : int(e.at)+e.text()] }

// shrink frees memory that the entries do not need.
func (t *table) shrink() {
	if t.count == 0 {
		t.buf, t.entries, t.first = nil, nil, 0
		return
	}
	start := int(t.entries[t.first&uint32(len(t.entries)-1)].at)
	if cap(t.buf) > len(t.buf)-start {
		for i := range t.count {
			t.entries[(t.first+i)&uint32(len(t.entries)-1)].at -= uint16(start)
		}
		t.buf = slices.Clone(t.buf[start:])
	}
	if n := 1 << bits.Len32(t.count-1); n < len(t.entries) {
		t.moveEntries(n)
	}
}
