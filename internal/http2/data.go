package http2

// data reads the header of a DATA frame (RFC 9113 §6.1). payload then reads the contents as they arrive.
func (c *Conn) data(h frameHeader, in []byte, ev *Event) (used int, p problem) {
	if h.stream == 0 {
		return 0, streamZero
	}
	used = headerLength
	pad := 0
	if h.has(flagPadded) {
		switch {
		case h.length == 0:
			return 0, wrongLength
		case len(in) == headerLength:
			return 0, noProblem
		}
		pad = int(in[used])
		used++
		if pad >= h.length {
			return 0, paddingTooLong
		}
	}
	length := h.length - (used - headerLength) - pad
	if h.stream > c.lastID || h.stream%2 == 0 {
		return 0, idleStream
	}
	if int64(h.length) > c.recvWindow {
		return 0, connectionWindow
	}
	c.recvWindow -= int64(h.length)
	c.dataLeft, c.padLeft, c.dataEnd, c.dataStream = int32(length), int32(pad), h.has(flagEndStream), nil
	st := c.find(h.stream)
	if st == nil || st.closed {
		c.refill()
		return used, c.lateData(h, length)
	}
	if p = c.dataProblem(st, h.length, length); p != noProblem {
		return used, c.failStream(st, p, ev)
	}
	st.recvWindow -= int32(h.length)
	st.unread += int32(length)
	c.unread += int64(length)
	if st.declared >= 0 {
		st.declared -= int64(length)
	}
	if length == 0 && !c.dataEnd {
		p = c.spend(EmptyData)
	}
	if length != h.length {
		c.refillStream(st) // padding is never read
		c.refill()
	}
	c.dataStream = st
	if length == 0 && pad == 0 && c.dataEnd {
		c.endData(st, nil, ev)
	}
	return used, p
}

// dataProblem returns the problem of a DATA frame on an open stream.
func (c *Conn) dataProblem(st *Stream, payload, length int) problem {
	switch {
	case st.recvEnded:
		return closedStream
	case int64(payload) > int64(st.recvWindow):
		return streamWindow
	case st.declared >= 0 && int64(length) > st.declared, c.dataEnd && st.declared > int64(length):
		return lengthDiffers
	}
	return noProblem
}

// lateData handles length bytes of DATA on a stream that has ended. DATA that was in flight when the server reset the stream
// costs no tokens, whatever its number of frames. If it cost tokens, the body of a refused request could end the connection
// and all its streams. The amount of such DATA is limited by the rest of the stream's window.
func (c *Conn) lateData(h frameHeader, length int) problem {
	if c.dataEnd {
		c.over.markInformed(h.stream) // both sides have ended the stream
	}
	if length > 0 && c.over.wasUnderWay(h.stream, h.length) {
		return noProblem
	}
	if _, byUs := c.over.find(h.stream); byUs || h.stream > c.refused {
		return c.spend(LateFrames)
	}
	return c.refuse(h.stream, 0, closedStream, Faults)
}

// payload reads the part of a DATA frame's payload that is available.
func (c *Conn) payload(in []byte, ev *Event) (used int) {
	st := c.dataStream
	if n := min(int(c.dataLeft), len(in)); n > 0 {
		c.dataLeft -= int32(n)
		used = n
		if st != nil {
			*ev = Event{Kind: BodyData, Stream: st, Data: in[:n:n]}
		}
	}
	if c.dataLeft == 0 {
		n := min(int(c.padLeft), len(in)-used)
		c.padLeft -= int32(n)
		used += n
	}
	if used > 0 && c.dataLeft|c.padLeft == 0 && c.dataEnd && st != nil {
		c.endData(st, ev.Data, ev)
	}
	return used
}

// endData makes the event for the last part of a body.
func (c *Conn) endData(st *Stream, data []byte, ev *Event) {
	*ev = Event{Kind: BodyData, Stream: st, Data: data, End: true}
	c.dataStream = nil
	c.endRecv(st)
}

// Consumed records that the owner has read n bytes of the stream's body and freed their memory. The bytes came from BodyData
// events. The windows may open by n bytes.
func (c *Conn) Consumed(st *Stream, n int) {
	if st.closed {
		return
	}
	set := min(int32(n), st.set)
	st.set -= set
	st.unread -= int32(n)
	c.unread -= int64(int32(n) - set)
	c.refillStream(st)
	c.refill()
}

// Unclaimed records that the received part of the stream's body will not be read soon. The stream's window stays closed. The
// connection's window opens again, because other streams share it.
func (c *Conn) Unclaimed(st *Stream) {
	if st.closed {
		return
	}
	c.unread -= int64(st.unread - st.set)
	st.set = st.unread
	c.refill()
}

// refillStream sends a WINDOW_UPDATE for the stream when the owner has read half of the window. It doubles the window if the
// owner has read all data that has arrived.
func (c *Conn) refillStream(st *Stream) {
	free := st.window - st.recvWindow - st.unread
	if st.recvEnded || free < st.window/2 {
		return
	}
	most := c.lim.MaxStreamWindow
	if c.MostWindow > 0 {
		most = min(most, c.MostWindow)
	}
	if st.unread == 0 && (!c.Tight || st.Roomy) && int(st.window) < most {
		wider := min(2*st.window, int32(most))
		free += wider - st.window
		st.window = wider
	}
	st.recvWindow += free
	c.Out = appendWindowUpdate(c.Out, st.ID, uint32(free))
}

// refill sends a WINDOW_UPDATE for the connection when half of its window was read.
func (c *Conn) refill() {
	window := int64(max(c.lim.ConnWindow, initialWindow))
	free := window - c.recvWindow - c.unread
	if free < window/2 {
		return
	}
	c.recvWindow += free
	c.Out = appendWindowUpdate(c.Out, 0, uint32(free))
}
