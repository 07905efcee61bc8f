package http2

import "math"

// A parting is the state of a stream that we have closed: it records whether the client knows.
type parting uint8

const (
	told    parting = iota // RST_STREAM was sent, or is not necessary
	waiting                // covered by the next PING
	asked                  // covered by the PING in flight
)

// partingPing is the payload of the PING sent after an answer.
const partingPing = "answered"

// Part ends a stream whose answer is complete and the rest of whose body is not needed (RFC 9113 §8.1). Further DATA
// is dropped. The client gets RST_STREAM, but only after it has read the answer, since some clients ignore the answer
// of a reset stream. It has read the answer when it acknowledges a PING sent after it. If the client ends or resets
// the stream meanwhile, no RST_STREAM is necessary.
func (c *Conn) Part(st *Stream) {
	if st.closed {
		return
	}
	c.close(st, true)
	c.refill()
	c.over.setParting(st.ID, waiting)
	c.askParting()
}

// partTime is the time limit for the acknowledgment of the PING, in nanoseconds.
const partTime = 10_000_000_000

// PartBy returns the time of the next call of [Conn.PartLate], comparable with Now, or 0.
func (c *Conn) PartBy() int64 { return c.over.askBy }

// PartLate resets streams of a client that has not acknowledged the PING in time. Otherwise it would keep its streams
// open and wait for their windows forever.
func (c *Conn) PartLate() {
	if c.over.askBy != 0 && c.Now >= c.over.askBy {
		c.over.overdue += min(1, math.MaxUint8-c.over.overdue)
		c.answeredParting()
	}
}

// askParting sends the PING for all earlier answers, unless one is in flight.
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

// parted resets the streams whose answers the client has read, and reports whether payload belongs to our PING. PINGs are
// acknowledged in order.
func (c *Conn) parted(payload []byte) bool {
	switch {
	case string(payload) != partingPing || c.over.askBy == 0 && c.over.overdue == 0:
		return false
	case c.over.overdue > 0: // acknowledges an earlier PING, sent before the current answers
		c.over.overdue--
	default:
		c.answeredParting()
	}
	return true
}

// answeredParting resets the streams that the PING covers, and sends a PING for streams that have ended since.
func (c *Conn) answeredParting() {
	c.over.askBy = 0
	for i := range c.over.cut {
		if s := &c.over.cut[i]; s.parting == asked {
			s.parting = told
			c.Out = appendReset(c.Out, s.id, NoError)
		}
	}
	c.askParting()
}

// told records that the client knows that a stream has ended, and reports whether a RST_STREAM was pending.
func (r *recent) told(id uint32) bool { return r.setParting(id, told) }

// setParting sets the state of a stream and reports whether it has changed.
func (r *recent) setParting(id uint32, to parting) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id && s.parting != to {
			s.parting = to
			return true
		}
	}
	return false
}
