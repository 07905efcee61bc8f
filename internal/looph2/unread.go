//go:build linux

package looph2

import "sync"

// An unread is a queue of bytes: the unread part of a body, or the unsent part of an answer. It consists of pieces of reused
// memory, in order.
//
//	first:  │ read │ unread … │    later:  │ … │  │ … free │
//
// Invariants: first is a part of mem, up to the end of its bytes; len is the number of bytes in all pieces, size the sum of
// their capacities.
type unread struct {
	mem   []byte
	first []byte
	later [][]byte
	len   int
	size  int
}

// pieceSize is the size in bytes of a piece; smaller contents use a piece of the size little.
const pieceSize, little = 16 << 10, 8 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// set replaces the content by b, which then belongs to u.
func (u *unread) set(b []byte) { *u = unread{mem: b, first: b, len: len(b), size: cap(b)} }

// add appends a copy of data.
func (u *unread) add(data []byte) {
	u.len += len(data)
	for len(data) > 0 {
		last := &u.first
		if n := len(u.later); n > 0 {
			last = &u.later[n-1]
		}
		n := min(len(data), cap(*last)-len(*last))
		*last = append(*last, data[:n]...)
		if data = data[n:]; len(data) > 0 {
			u.grow(len(data))
		}
	}
}

// grow adds memory for n more bytes.
func (u *unread) grow(n int) {
	need := len(u.first) + n
	if len(u.later) == 0 && need <= little {
		small := append(make([]byte, 0, min(2*need, little)), u.first...)
		freePiece(u.mem)
		u.mem, u.first, u.size = small, small, cap(small)
		return
	}
	p := pieces.Get().(*[pieceSize]byte)[:0]
	u.size += pieceSize
	if len(u.first) > 0 {
		u.later = append(u.later, p)
		return
	}
	u.size -= cap(u.mem)
	u.mem, u.first = p, p
}

// room returns the number of bytes of an answer that may be added; u holds at most streamRoom bytes. A new piece is begun only when
// at most half of streamRoom is unsent. Otherwise a client that takes a few bytes at a time would double the memory held.
func (u *unread) room() int {
	room := streamRoom - u.len
	if u.len <= streamRoom/2 {
		return room
	}
	last := u.first
	if n := len(u.later); n > 0 {
		last = u.later[n-1]
	}
	return min(room, cap(last)-len(last))
}

// read removes bytes and copies them to p.
func (u *unread) read(p []byte) (n int) {
	for n < len(p) && u.len > 0 {
		k := copy(p[n:], u.first)
		n += k
		u.skip(k)
	}
	return n
}

// skip removes n bytes of first.
func (u *unread) skip(n int) {
	u.first = u.first[n:]
	if u.len -= n; len(u.first) == 0 {
		u.next()
	}
}

// next continues with the next piece.
func (u *unread) next() {
	freePiece(u.mem)
	u.size -= cap(u.mem)
	u.mem, u.first = nil, nil
	if len(u.later) > 0 {
		u.mem = u.later[0]
		u.first = u.mem
		u.later[0] = nil
		if u.later = u.later[1:]; len(u.later) == 0 {
			u.later = nil
		}
	}
}

// drop discards all bytes.
func (u *unread) drop() {
	for u.mem != nil {
		u.next()
	}
	*u = unread{}
}

func freePiece(b []byte) {
	if cap(b) == pieceSize {
		pieces.Put((*[pieceSize]byte)(b[:pieceSize]))
	}
}
