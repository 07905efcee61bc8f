package http2

import "math"

// A parting says whether the client of a stream that we have closed knows that.
type parting uint8

const (
	told    parting = iota // it has been sent RST_STREAM, or need not know
	waiting                // it is to be asked whether it has read the answer
	asked                  // ... by the PING that is under way
)

// partingPing is what is in the PING behind an answer.
const partingPing = "answered"

// Part ends a stream whose answer is complete, and of whose body nobody wants the rest (RFC 9113 §8.1). What comes of that is dropped from
// now on. The client is told by RST_STREAM, but not before it has read the answer, as it says by acknowledging a PING that is sent
// behind it: some clients do not look at the answer of a stream that has been reset. One that ends or resets the stream meanwhile need not
// be told.
func (c *Conn) Part(st *Stream) {
	if st.closed {
		return
	}
	c.close(st, true)
	c.refill()
	c.over.setParting(st.ID, waiting)
	c.askParting()
}

// partTime is for how long, in nanoseconds, a client is waited for that does not acknowledge the PING.
const partTime = 10_000_000_000

// PartBy returns when [Conn.PartLate] is to be called, in the time of Now: 0 while no client is waited for.
func (c *Conn) PartBy() int64 { return c.over.askBy }

// PartLate tells a client that has not acknowledged the PING in time all the same: else it would hold on to its streams, and wait
// for their windows, for ever.
func (c *Conn) PartLate() {
	if c.over.askBy != 0 && c.Now >= c.over.askBy {
		c.over.overdue += min(1, math.MaxUint8-c.over.overdue)
		c.answeredParting()
	}
}

// askParting asks the client whether it has read the answers so far, unless it has been asked already.
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

// parted resets the streams whose answers the client has read by now, and reports whether it was asked. PINGs are acknowledged
// in their order.
func (c *Conn) parted(payload []byte) bool {
	switch {
	case string(payload) != partingPing || c.over.askBy == 0 && c.over.overdue == 0:
		return false
	case c.over.overdue > 0: // it is that of an earlier one, and says nothing of the answers behind that
		c.over.overdue--
	default:
		c.answeredParting()
	}
	return true
}

// answeredParting resets the streams that were asked about, and asks about those that have come since.
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

// told notes that the client need not be told any more that a stream is over, and reports whether it was to be.
func (r *recent) told(id uint32) bool { return r.setParting(id, told) }

// setParting notes what is known of a stream's parting, and reports whether that is news.
func (r *recent) setParting(id uint32, to parting) bool {
	for i := range r.cut {
		if s := &r.cut[i]; s.id == id && s.parting != to {
			s.parting = to
			return true
		}
	}
	return false
}
