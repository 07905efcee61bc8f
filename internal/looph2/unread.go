//go:build linux

package looph2

import "sync"

// unread is what has come of a body and was not read, or was made of an answer and not sent: pieces of memory
// that are used again, in order.
//
//	first:  │ read │ unread … │    later:  │ … │  │ … free │
//
// Invariants: first is a part of mem, up to where that is filled; len is the sum of what is in
// all of them, size that of their capacities.
type unread struct {
	mem   []byte
	first []byte
	later [][]byte
	len   int
	size  int
}

// pieceSize is the size in bytes of a piece; a little lies in less.
const pieceSize, little = 16 << 10, 8 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// set makes it b, which nobody else uses.
func (u *unread) set(b []byte) { *u = unread{mem: b, first: b, len: len(b), size: cap(b)} }

// add copies data behind what is there.
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

// grow adds memory for more bytes that are about to come.
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

// room returns how many bytes of an answer may be added, up to streamRoom in all. A new piece of memory is
// begun only when half of the first is sent: else a client that takes little at a time would have twice as
// much held.
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

// read takes bytes out.
func (u *unread) read(p []byte) (n int) {
	for n < len(p) && u.len > 0 {
		k := copy(p[n:], u.first)
		n += k
		u.skip(k)
	}
	return n
}

// skip takes n bytes out, which first has.
func (u *unread) skip(n int) {
	u.first = u.first[n:]
	if u.len -= n; len(u.first) == 0 {
		u.next()
	}
}

// next goes on to the next piece.
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

// drop forgets all of it.
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
