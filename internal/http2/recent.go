package http2

import "slices"

// recent holds streams that have ended, to handle late frames on them (RFC 9113 §5.1). Frames that were in flight when
// the server reset a stream are ignored. A frame on a stream that the client has closed is an error.
//
// At most Limits.MaxStreams streams can be open in the view of the client although the server has reset them, apart
// from streams that the client began before it received the server's settings. recent holds twice as many. For a
// stream that it no longer holds, it assumes that the frame was in flight, and the frame costs tokens.
type recent struct {
	closed  [8]uint32 // the streams that the client closed last
	next    uint8     // index of the next entry
	overdue uint8     // number of PINGs whose time limit has passed and that may still be acknowledged; at most 255
	oldest  uint16    // index of the oldest entry of cut, if cut is full
	forgot  uint32    // largest ID that was removed from cut
	cut     []cutStream
	askBy   int64 // deadline for the acknowledgment of the PING in flight, or 0, see Part
}

// A cutStream is a stream that the server has reset.
type cutStream struct {
	id       uint32
	underWay int32 // maximum number of bytes of DATA in flight: the rest of the window
	parting  parting
	reset    bool // the client has also reset the stream, and must not send more
}

// cutStreamSize is the size of a cutStream in bytes.
const cutStreamSize = 12

// addClosed adds a stream that the client has closed.
func (r *recent) addClosed(id uint32) {
	r.closed[r.next] = id
	r.next = (r.next + 1) % uint8(len(r.closed))
}

// addCut adds a stream that the server has reset. limit is the maximum number of entries; when it is reached, the
// oldest entry is removed. If the client has not yet been informed of the end of the removed stream, addCut returns
// the ID of that stream, otherwise 0.
func (r *recent) addCut(id uint32, underWay int32, limit int) (uninformed uint32) {
	s := cutStream{id: id, underWay: underWay}
	if len(r.cut) < limit {
		r.cut = append(r.cut, s)
		return 0
	}
	old := &r.cut[r.oldest]
	r.forgot = max(r.forgot, old.id)
	if old.parting != informed {
		uninformed = old.id
	}
	*old = s
	r.oldest = uint16((int(r.oldest) + 1) % len(r.cut))
	return uninformed
}

// resetByClient records that the client has reset a stream that the server has also reset. It reports whether a
// RST_STREAM was pending.
func (r *recent) resetByClient(id uint32) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id {
			s.reset = true
		}
	}
	return r.markInformed(id)
}

// find reports whether a stream is known to have ended, and whether the server has reset it or may have reset it.
func (r *recent) find(id uint32) (known, byUs bool) {
	for _, s := range r.cut {
		if s.id == id {
			return true, !s.reset
		}
	}
	for _, kept := range r.closed {
		if kept == id {
			return true, false
		}
	}
	return id <= r.forgot, true
}

// wasUnderWay reports whether n bytes of DATA on a stream may have been in flight when the server reset the stream. It
// then subtracts n from the maximum number of such bytes.
func (r *recent) wasUnderWay(id uint32, n int) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id && n <= int(s.underWay) {
			s.underWay -= int32(n)
			return true
		}
	}
	return false
}

// rest releases the memory of the entries for an idle connection, unless a RST_STREAM is pending.
func (r *recent) rest() {
	if slices.ContainsFunc(r.cut, func(s cutStream) bool { return s.parting != informed }) {
		return
	}
	for _, s := range r.cut {
		r.forgot = max(r.forgot, s.id)
	}
	r.cut, r.oldest = nil, 0
}
