package http2

import "encoding/binary"

// priorityFrame reads a PRIORITY frame (RFC 9113 §6.3) and ignores its contents (RFC 9113 §5.3).
func (c *Conn) priorityFrame(h frameHeader, payload []byte, ev *Event) problem {
	if h.stream == 0 {
		return streamZero
	}
	p := noProblem
	if len(payload) != 5 {
		p = priorityLength
	} else if binary.BigEndian.Uint32(payload)&maxStreamID == h.stream {
		p = dependsOnItself
	}
	if p == noProblem {
		return c.spend(Priorities)
	}
	if st := c.find(h.stream); st != nil && !st.closed {
		return c.failStream(st, p, ev)
	}
	return p // the error must not reset a stream that does not exist
}

// resetFrame reads a RST_STREAM frame (RFC 9113 §6.4).
func (c *Conn) resetFrame(h frameHeader, payload []byte, ev *Event) problem {
	switch {
	case h.stream == 0:
		return streamZero
	case len(payload) != 4:
		return wrongLength
	case h.stream > c.lastID || h.stream%2 == 0:
		return idleStream
	}
	st := c.find(h.stream)
	if st == nil || st.closed {
		if c.over.resetByClient(h.stream) {
			return noProblem // the client stops a body of which the rest is not needed, see Part
		}
		return c.spend(LateFrames)
	}
	*ev = Event{Kind: StreamOver, Stream: st, Err: Error{problem: resetStream}}
	r, patient := Resets, c.Now-st.begun >= freeResetAge
	switch {
	case st.answered && !st.running:
		r = LateFrames // the answer was complete
	case st.answered:
		c.bucket.credit(creditPartly)
	}
	c.close(st, false)
	c.refill()
	if patient {
		return noProblem
	}
	return c.spend(r)
}

// ping answers a PING frame (RFC 9113 §6.7).
func (c *Conn) ping(h frameHeader, payload []byte) problem {
	switch {
	case h.stream != 0:
		return notStreamZero
	case len(payload) != 8:
		return wrongLength
	case !h.has(flagAck):
		c.Out = appendHeader(c.Out, frameHeader{length: 8, kind: framePing, flags: flagAck})
		c.Out = append(c.Out, payload...)
	case c.parted(payload):
		return noProblem
	}
	return c.spend(Pings)
}

// goAwayFrame reads a GOAWAY frame (RFC 9113 §6.8).
func (c *Conn) goAwayFrame(h frameHeader, payload []byte) problem {
	switch {
	case h.stream != 0:
		return notStreamZero
	case len(payload) < 8:
		return wrongLength
	}
	c.goingAway = true
	return c.spend(SettingsFrames)
}

// windowUpdate reads a WINDOW_UPDATE frame (RFC 9113 §6.9).
func (c *Conn) windowUpdate(h frameHeader, payload []byte, ev *Event) problem {
	if len(payload) != 4 {
		return wrongLength
	}
	by := int64(binary.BigEndian.Uint32(payload) & maxWindow)
	if h.stream == 0 {
		switch {
		case by == 0:
			return connectionUpdateZero
		case c.sendWindow+by > maxWindow:
			return connectionWindowFull
		}
		c.sendWindow += by
		return c.spend(WindowUpdates)
	}
	if h.stream > c.lastID || h.stream%2 == 0 {
		return idleStream
	}
	st := c.find(h.stream)
	switch {
	case st == nil || st.closed:
		return c.spend(WindowUpdates) // the frame was in flight
	case by == 0:
		return c.failStream(st, streamUpdateZero, ev)
	case st.sendWindow+by > maxWindow:
		return c.failStream(st, streamWindowFull, ev)
	}
	c.moveWindow(st, by)
	return c.spend(WindowUpdates)
}

// A namedPriority is the priority of a stream that is not yet open.
type namedPriority struct {
	id       uint32
	priority Priority
}

// maxLater is the maximum number of priorities that are stored for streams that are not yet open.
const maxLater = 16

// priorityUpdate reads a PRIORITY_UPDATE frame (RFC 9218 §7.1).
func (c *Conn) priorityUpdate(h frameHeader, payload []byte) problem {
	switch {
	case h.stream != 0:
		return notStreamZero
	case len(payload) < 4:
		return wrongLength
	}
	id := binary.BigEndian.Uint32(payload) & maxStreamID
	if id == 0 || id%2 == 0 {
		return badPriorityUpdate
	}
	p := ParsePriority(payload[4:], defaultPriority)
	if st := c.find(id); st != nil {
		if !st.closed {
			c.prioritize(st, p)
		}
	} else if id > c.lastID {
		c.prioritizeLater(id, p)
	}
	return c.spend(Priorities)
}

// prioritizeLater stores the latest priority of a stream that is not yet open.
func (c *Conn) prioritizeLater(id uint32, p Priority) {
	for i := range c.later {
		if c.later[i].id == id {
			c.later[i].priority = p
			return
		}
	}
	if len(c.later) < maxLater {
		c.later = append(c.later, namedPriority{id, p})
	}
}

// priorityOf returns the priority of a new stream. own is the priority in the stream's fields. A PRIORITY_UPDATE frame that was
// received before the stream takes precedence over own.
func (c *Conn) priorityOf(id uint32, own Priority) Priority {
	kept := c.later[:0]
	for _, l := range c.later {
		switch {
		case l.id == id:
			own = l.priority
		case l.id > id:
			kept = append(kept, l)
		}
	}
	c.later = kept
	return own
}
