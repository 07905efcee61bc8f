package hpack

import (
	"math/bits"
	"slices"
)

// entryOverhead is the size that an entry counts for in addition to its text, in bytes (RFC 7541 §4.1).
const entryOverhead = 32

// MaxTableSize is the maximum size of a dynamic table, in bytes as in RFC 7541 §4.1.
const MaxTableSize = 1<<16 - 1

// table is a dynamic table (RFC 7541 §2.3.2): a ring of entries, and a buffer with their texts in the same order.
//
//	buf:  │ evicted │ oldest … newest │ free │
//	                ↑ entries[first].at
//
// The texts are moved to the front if the free space does not suffice. Ring and buffer grow as the table fills, but
// not beyond what a table of size max can need.
//
// Invariants: size ≤ max; the texts of the entries are consecutive and end at len(buf); len(entries) is 0 or a
// power of two.
type table struct {
	buf     []byte
	entries []entry
	first   uint32 // number of the oldest entry, counted from the first entry of the connection
	count   uint32
	size    uint32 // size as in RFC 7541 §4.1
	max     uint32
}

// An entry has its text at buf[at:]: the name and the value. If the entry index of the static table has the name,
// the text is only the value.
type entry struct {
	at          uint16
	name, value uint16 // lengths
	class       Class
	index       uint8
}

// text returns the length of the entry's text in the buffer.
func (e *entry) text() int {
	if e.index != 0 {
		return int(e.value)
	}
	return int(e.name) + int(e.value)
}

func (e *entry) size() uint32 { return uint32(e.name) + uint32(e.value) + entryOverhead }

// get returns the entry with an index in the dynamic table, or nil. The newest entry has the index 0.
func (t *table) get(i uint32) *entry {
	if i >= t.count {
		return nil
	}
	return &t.entries[(t.first+t.count-1-i)&uint32(len(t.entries)-1)]
}

// setMax changes the maximum size of the table, and evicts entries that exceed it.
func (t *table) setMax(n uint32) {
	t.max = n
	t.evict(n)
	if n == 0 {
		t.buf, t.entries, t.first = nil, nil, 0
	}
}

// evict removes the oldest entries until the size is at most limit.
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

// add copies the text of e, adds e as the newest entry, and evicts entries to make room. An entry that is larger
// than the table empties the table (RFC 7541 §4.4).
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
		// Only the table refers to the old buffer, because lists contain copies.
		t.buf = append(make([]byte, 0, min(most, max(2*cap(t.buf), need, 256))), live...)
	} else {
		t.buf = t.buf[:copy(t.buf[:cap(t.buf)], live)]
	}
	for i := range t.count {
		t.entries[(t.first+i)&uint32(len(t.entries)-1)].at -= uint16(start)
	}
}

// growEntries doubles the ring of entries.
func (t *table) growEntries() {
	t.moveEntries(max(8, 2*len(t.entries)))
}

// moveEntries moves the entries to a ring of n entries. n must be a power of two.
func (t *table) moveEntries(n int) {
	other := make([]entry, n)
	for i := range t.count {
		other[i] = t.entries[(t.first+i)&uint32(len(t.entries)-1)]
	}
	t.entries, t.first = other, 0
}

// footprint returns the memory of the table, in bytes.
func (t *table) footprint() int { return cap(t.buf) + cap(t.entries)*entrySize }

const entrySize = 10

// textOf returns the text of an entry.
func (t *table) textOf(e *entry) []byte { return t.buf[e.at : int(e.at)+e.text()] }

// shrink releases memory that the entries do not need.
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
