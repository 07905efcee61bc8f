package http2

import "slices"

// recent holds streams that have ended, to handle late frames on them (RFC 9113 §5.1). Frames that were in flight when
// we reset a stream are ignored. A frame on a stream that the client itself has closed is an error.
//
// At most Limits.MaxStreams of the streams that the client believes open can have been reset by us, except those that
// it began before it knew our settings. recent holds twice as many. For older streams it assumes that a frame was in
// flight, and charges tokens for it.
type recent struct {
	closed  [8]uint32 // last streams that the client has closed
	next    uint8     // index of the next entry
	overdue uint8     // number of late PINGs that may still be acknowledged; saturates
	oldest  uint16    // index of the oldest entry of cut, if cut is full
	forgot  uint32    // largest number removed from cut
	cut     []cutStream
	askBy   int64 // deadline for the acknowledgment of the PING in flight, or 0, see Part
}

// A cutStream is a stream that we have reset.
type cutStream struct {
	id       uint32
	underWay int32 // maximum number of DATA bytes in flight: the rest of the window
	parting  parting
	reset    bool // the client has reset it, too, and must not send more
}

// cutStreamSize is the size of a cutStream in bytes.
const cutStreamSize = 12

// addClosed adds a stream that its client has closed.
func (r *recent) addClosed(id uint32) {
	r.closed[r.next] = id
	r.next = (r.next + 1) % uint8(len(r.closed))
}

// addCut adds a stream that we have reset. limit is the maximum number of entries. It returns the number of the entry
// removed for it, if the client does not know yet that that stream has ended, else 0.
func (r *recent) addCut(id uint32, underWay int32, limit int) (untold uint32) {
	s := cutStream{id: id, underWay: underWay}
	if len(r.cut) < limit {
		r.cut = append(r.cut, s)
		return 0
	}
	old := &r.cut[r.oldest]
	r.forgot = max(r.forgot, old.id)
	if old.parting != told {
		untold = old.id
	}
	*old = s
	r.oldest = uint16((int(r.oldest) + 1) % len(r.cut))
	return untold
}

// resetByClient records that the client has reset a stream that we have reset. It reports whether a RST_STREAM was
// pending.
func (r *recent) resetByClient(id uint32) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id {
			s.reset = true
		}
	}
	return r.told(id)
}

// find reports whether a stream is known, and whether we have reset it, or may have.
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

// wasUnderWay reports whether n bytes of DATA may have been in flight when we reset the stream, and subtracts them
// from the maximum.
func (r *recent) wasUnderWay(id uint32, n int) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id && n <= int(s.underWay) {
			s.underWay -= int32(n)
			return true
		}
	}
	return false
}

// rest releases the memory of a connection without recent input, unless the client must still be informed that a
// stream has ended.
func (r *recent) rest() {
	if slices.ContainsFunc(r.cut, func(s cutStream) bool { return s.parting != told }) {
		return
	}
	for _, s := range r.cut {
		r.forgot = max(r.forgot, s.id)
	}
	r.cut, r.oldest = nil, 0
}
