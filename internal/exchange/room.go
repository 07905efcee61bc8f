package exchange

import "sync/atomic"

// Room is the initial capacity of buffers that are filled piece by piece and have similar final lengths. It is the final length
// of the last buffer plus an eighth. A nil Room gives no initial capacity. Safe for concurrent use.
type Room struct{ bytes atomic.Uint32 }

// Append appends p to buf. If buf is nil, it is allocated with the initial capacity.
func (r *Room) Append(buf, p []byte) []byte {
	if buf == nil && r != nil {
		buf = make([]byte, 0, max(int(r.bytes.Load()), len(p)))
	}
	return append(buf, p...)
}

// Used records the final length n of a buffer. The initial capacity is at most limit bytes. Small changes are not stored, because
// all processors read the cache line of the value.
func (r *Room) Used(n, limit int) {
	if r == nil {
		return
	}
	if had := int(r.bytes.Load()); n > had || n < had/2 {
		r.bytes.Store(uint32(min(n+n/8, limit)))
	}
}
