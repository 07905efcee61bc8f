package http2

import "math"

// A parting is the state of a stream that the server has closed: it records whether the client has been informed.
type parting uint8

const (
	informed parting = iota // RST_STREAM was sent, or is not necessary
	waiting                 // RST_STREAM is pending; the next PING covers the stream
	asked                   // RST_STREAM is pending; the PING in flight covers the stream
)

// partingPing is the payload of the PING that is sent after an answer.
const partingPing = "answered"

// Part ends a stream whose answer is complete and whose request body is not, if the rest of the body is not needed (RFC
// 9113 §8.1). Further DATA is dropped. The server sends RST_STREAM only after the client has read the answer, because
// some clients ignore the answer of a reset stream. The client has read the answer when it acknowledges a PING that was
// sent after the answer. If the client ends or resets the stream before, no RST_STREAM is necessary.
func (c *Conn) Part(st *Stream) {
	if st.closed {
		return
	}
	c.close(st, true)
	c.refill()
	c.over.setParting(st.ID, waiting)
	c.askParting()
}

// partTime is the time limit for the acknowledgment of a PING, in nanoseconds.
const partTime = 10_000_000_000

// PartBy returns the time at which the owner must call [Conn.PartLate], comparable with Now. It returns 0 if no call is
// necessary.
func (c *Conn) PartBy() int64 { return c.over.askBy }

// PartLate resets the streams for which the client has not acknowledged the PING in time. Without the reset, the client
// would keep these streams open and wait for their windows forever.
func (c *Conn) PartLate() {
	if c.over.askBy != 0 && c.Now >= c.over.askBy {
		c.over.overdue += min(1, math.MaxUint8-c.over.overdue)
		c.answeredParting()
	}
}

// askParting sends a PING that covers all earlier answers, unless a PING is in flight.
func (c *Conn) askParting() {
	if c.over.askBy != 0 {
		return
	}
	for i := range c.over.cut {
		if s := &c.over.cut[i]; s.parting == waiting {
			s.parting, c.over.askBy = asked, c.Now+partTime
		}
	}
	if c.over.askBy != 0 {
		c.Out = appendHeader(c.Out, frameHeader{length: len(partingPing), kind: framePing})
		c.Out = append(c.Out, partingPing...)
	}
}

// parted handles the acknowledgment of a PING, and reports whether payload belongs to a PING of the server. PINGs are
// acknowledged in order. If the acknowledged PING covers the current answers, parted resets their streams.
func (c *Conn) parted(payload []byte) bool {
	switch {
	case string(payload) != partingPing || c.over.askBy == 0 && c.over.overdue == 0:
		return false
	case c.over.overdue > 0: // acknowledges an earlier PING, which does not cover the current answers
		c.over.overdue--
	default:
		c.answeredParting()
	}
	return true
}

// answeredParting resets the streams that the PING covers, and sends a PING for streams that Part has ended since.
func (c *Conn) answeredParting() {
	c.over.askBy = 0
	for i := range c.over.cut {
		if s := &c.over.cut[i]; s.parting == asked {
			s.parting = informed
			c.Out = appendReset(c.Out, s.id, NoError)
		}
	}
	c.askParting()
}

// markInformed records that the client has been informed of the end of a stream, and reports whether a RST_STREAM was
// pending.
func (r *recent) markInformed(id uint32) bool { return r.setParting(id, informed) }

// setParting sets the state of a stream and reports whether this changed the state.
func (r *recent) setParting(id uint32, to parting) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id && s.parting != to {
			s.parting = to
			return true
		}
	}
	return false
}
