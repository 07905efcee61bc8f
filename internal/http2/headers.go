package http2

import "encoding/binary"

// headers reads a HEADERS frame (RFC 9113 §6.2).
func (c *Conn) headers(h frameHeader, payload []byte, ev *Event) problem {
	if h.stream == 0 {
		return streamZero
	}
	if h.stream%2 == 0 {
		return evenStream
	}
	pad := 0
	if h.has(flagPadded) {
		if len(payload) == 0 {
			return wrongLength
		}
		pad, payload = int(payload[0]), payload[1:]
	}
	self := false
	if h.has(flagPriority) {
		if len(payload) < 5 {
			return wrongLength
		}
		self = binary.BigEndian.Uint32(payload)&maxStreamID == h.stream
		payload = payload[5:]
	}
	if pad > len(payload) {
		return paddingTooLong
	}
	payload = payload[:len(payload)-pad]
	end := h.has(flagEndStream)
	if h.has(flagEndHeaders) {
		return c.fields(h.stream, payload, end, self, ev)
	}
	c.blockStream, c.blockEnd, c.blockSelf = h.stream, end, self
	c.block = append(c.block[:0], payload...)
	return noProblem
}

// continuation reads a CONTINUATION frame (RFC 9113 §6.10).
func (c *Conn) continuation(h frameHeader, payload []byte, ev *Event) problem {
	if c.blockStream == 0 {
		return continuationAlone
	}
	if len(c.block)+len(payload) > c.lim.MaxBlock {
		return blockTooLarge
	}
	if p := c.spend(Continuations); p != noProblem {
		return p
	}
	c.block = append(c.block, payload...)
	if !h.has(flagEndHeaders) {
		return noProblem
	}
	c.blockStream = 0
	p := c.fields(h.stream, c.block, c.blockEnd, c.blockSelf, ev)
	if cap(c.block) > maxFrame {
		c.block = nil
	}
	return p
}

// fields decodes a complete field block. The block belongs to a request or to trailers, or is
// dropped.
func (c *Conn) fields(id uint32, block []byte, end, self bool, ev *Event) problem {
	r := &c.pool.request
	if r.Fields.Footprint() > keptList {
		*r = Request{}
	}
	// Every block must be decoded, because it may change the dynamic table.
	if err := c.decoder.Decode(block, &r.Fields, &c.lim.Fields); err != nil {
		return blockProblem(err)
	}
	if id > c.lastID {
		return c.request(id, r, end, self, ev)
	}
	st := c.find(id)
	if st != nil && !st.closed {
		return c.trailers(st, r, end, ev)
	}
	if end {
		c.over.markInformed(id) // both sides have ended the stream
	}
	known, byUs := c.over.find(id)
	switch {
	case known && byUs, id > c.refused:
		return c.spend(LateFrames)
	case known || st != nil:
		return closedStream // this problem ends the connection
	}
	return oldStream
}

// request opens a stream.
func (c *Conn) request(id uint32, r *Request, end, self bool, ev *Event) problem {
	c.lastID = id
	underWay := int32(0) // maximum number of bytes of DATA that may be in flight on the stream
	if !end {
		underWay = c.firstWindow()
	}
	switch {
	case id > c.refused:
		return c.spend(Refusals) // the final GOAWAY informs the client
	case self:
		return c.refuse(id, underWay, dependsOnItself, Faults)
	case len(c.streams) >= c.lim.MaxStreams:
		return c.refuse(id, underWay, tooManyStreams, Refusals)
	}
	if p := r.interpret(c.lim); p != noProblem {
		return c.refuse(id, underWay, p, Faults)
	}
	if end && r.ContentLength > 0 {
		return c.refuse(id, underWay, lengthDiffers, Faults)
	}
	st := c.open(id)
	st.recvEnded, st.declared = end, r.ContentLength
	st.priority = c.priorityOf(id, r.Priority)
	*ev = Event{Kind: RequestBegun, Stream: st, Request: r, End: end}
	return noProblem
}

// trailers reads the fields that follow a body.
func (c *Conn) trailers(st *Stream, r *Request, end bool, ev *Event) problem {
	p := noProblem
	switch {
	case st.recvEnded:
		p = closedStream
	case !end:
		p = trailersWithoutEnd
	case st.declared > 0:
		p = lengthDiffers
	default:
		p = checkTrailers(&r.Fields)
	}
	if p != noProblem {
		return c.failStream(st, p, ev)
	}
	*ev = Event{Kind: BodyTrailers, Stream: st, Trailers: &r.Fields, End: true}
	c.endRecv(st)
	return noProblem
}

// endRecv records that the client has sent END_STREAM.
func (c *Conn) endRecv(st *Stream) {
	st.recvEnded = true
	if st.sendEnded {
		c.close(st, false)
	}
}
