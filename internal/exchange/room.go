package exchange

import "sync/atomic"

// Room is the first capacity of buffers that are filled piece by piece and end up about as long as the last one was: as
// much as that, and an eighth more. A nil Room knows nothing of the last one.
type Room struct{ bytes atomic.Uint32 }

// Append is append, and makes a nil buf with room.
func (r *Room) Append(buf, p []byte) []byte {
	if buf == nil && r != nil {
		buf = make([]byte, 0, max(int(r.bytes.Load()), len(p)))
	}
	return append(buf, p...)
}

// Used tells that a buffer was filled with n bytes, of at most as many as most. Lengths that differ little leave the
// value alone, since all processors read the memory around it.
func (r *Room) Used(n, most int) {
	if r == nil {
		return
	}
	if had := int(r.bytes.Load()); n > had || n < had/2 {
		r.bytes.Store(uint32(min(n+n/8, most)))
	}
}
