//go:build linux

package looph2

import "sync"

// unread is received data of a body that was not read, or data of a response that was not sent: reusable pieces of memory, in
// order.
//
//	first:  │ read │ unread … │    later:  │ … │  │ … free │
//
// Invariants: first is a part of mem, up to its filled end; len is the sum of the data in all pieces, size that of their
// capacities.
type unread struct {
	mem   []byte
	first []byte
	later [][]byte
	len   int
	size  int
}

// pieceSize is the size in bytes of a piece; up to little bytes are stored in a smaller one.
const pieceSize, little = 16 << 10, 8 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// set makes it b, which must have no other user.
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

// room returns the number of bytes of a response that may be added, up to streamRoom in all. A new piece of memory is begun
// only when half of the first is sent: otherwise a client that reads little at a time would hold twice as much.
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

// read removes bytes from the front and copies them to p.
func (u *unread) read(p []byte) (n int) {
	for n < len(p) && u.len > 0 {
		k := copy(p[n:], u.first)
		n += k
		u.skip(k)
	}
	return n
}

// skip removes n bytes, which are in first.
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

// drop drops all data.
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
