package exchange

import "sync/atomic"

// Room is the initial capacity of buffers that are filled piece by piece and have similar final lengths: that of the last one
// plus an eighth. A nil Room has no estimate.
type Room struct{ bytes atomic.Uint32 }

// Append is append, but allocates a nil buf with the initial capacity.
func (r *Room) Append(buf, p []byte) []byte {
	if buf == nil && r != nil {
		buf = make([]byte, 0, max(int(r.bytes.Load()), len(p)))
	}
	return append(buf, p...)
}

// Used records the final length n of a buffer, up to limit bytes. Small differences are not stored, since all processors read
// the memory around the value.
func (r *Room) Used(n, limit int) {
	if r == nil {
		return
	}
	if had := int(r.bytes.Load()); n > had || n < had/2 {
		r.bytes.Store(uint32(min(n+n/8, limit)))
	}
}
