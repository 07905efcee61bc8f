package http2

import "slices"

// recent remembers streams that are over, for what may still come on them (RFC 9113 §5.1). What a client sent on a
// stream before it knew that we had reset it was under way and is ignored; what it sends on one that it has closed
// itself is an error.
//
// Of the streams that its client believes to be open, no more than Limits.MaxStreams can have been reset by us, but for
// those that it began before it knew our settings. Twice as many are remembered. Of what is older it is not known any more
// whether it was under way: it is taken to have been, and paid for.
type recent struct {
	closed  [8]uint32 // the last ones that their clients have closed
	next    uint8     // where in it the next goes
	overdue uint8     // PINGs that were not acknowledged in time, and may be yet; no more are counted than fit
	oldest  uint16    // in cut, when that is full
	forgot  uint32    // the largest number that was in cut and is not any more
	cut     []cutStream
	askBy   int64 // until when the PING that is under way for those that are asked about is to be acknowledged, 0: none is, see Part
}

// A cutStream is one that we have reset.
type cutStream struct {
	id       uint32
	underWay int32 // bytes of DATA that may come of it: what its window had left
	parting  parting
	reset    bool // its client has reset it, too: nothing may come after that
}

// cutStreamSize is the size of one in bytes.
const cutStreamSize = 12

// addClosed notes a stream that its client has closed.
func (r *recent) addClosed(id uint32) {
	r.closed[r.next] = id
	r.next = (r.next + 1) % uint8(len(r.closed))
}

// addCut notes a stream that we have reset; most is how many are remembered. It returns the one that is forgotten for it
// if its client does not know yet that it is over, else 0.
func (r *recent) addCut(id uint32, underWay int32, most int) (untold uint32) {
	s := cutStream{id: id, underWay: underWay}
	if len(r.cut) < most {
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

// resetByClient notes that the client of a stream that we have reset has reset it, too, and reports whether it was to be told
// that the stream is over.
func (r *recent) resetByClient(id uint32) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id {
			s.reset = true
		}
	}
	return r.told(id)
}

// find reports whether a stream is among them, and whether we have reset it, or may have.
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

// wasUnderWay reports whether a client may have sent so many bytes of DATA before it knew that we have reset
// their stream, and takes them off what there may be.
func (r *recent) wasUnderWay(id uint32, n int) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id && n <= int(s.underWay) {
			s.underWay -= int32(n)
			return true
		}
	}
	return false
}

// rest gives the memory back, on a connection on which nothing has come for a while, unless its client must still be told
// that a stream is over.
func (r *recent) rest() {
	if slices.ContainsFunc(r.cut, func(s cutStream) bool { return s.parting != told }) {
		return
	}
	for _, s := range r.cut {
		r.forgot = max(r.forgot, s.id)
	}
	r.cut, r.oldest = nil, 0
}
