package http2

import "github.com/dunlinhttp/dunlin/internal/hpack"

// The parts of an answer are written in the order in which they are sent:
//
//	if c.BeginHead(st, status) { c.Field(…) …; c.EndHead(end) }
//	c.Data(st, piece, end) …
//	if c.BeginTrailers(st) { c.Field(…) …; c.EndTrailers() }
//
// Between a Begin method and the End method, the caller may call only Field and ContentLength, and must not append
// to Out. Names may be in upper or lower case.

// BeginHead begins the head of an answer. The head of an interim response has a status below 200. If the stream has
// ended or its answer is complete, BeginHead has no effect and returns false.
func (c *Conn) BeginHead(st *Stream, status int) bool {
	if !c.beginBlock(st) {
		return false
	}
	c.interim = status < 200
	c.Out = c.encoder.AppendStatus(c.Out, status)
	return true
}

// BeginTrailers begins the trailers of an answer. It returns false under the same conditions as BeginHead.
func (c *Conn) BeginTrailers(st *Stream) bool { return c.beginBlock(st) }

func (c *Conn) beginBlock(st *Stream) bool {
	if st.sendEnded {
		return false
	}
	c.writing, c.begin = st, len(c.Out)
	c.Out = appendHeader(c.Out, frameHeader{})
	c.Out = c.encoder.Begin(c.Out)
	return true
}

// Field adds a field. It does not check the field; see [semantics.CheckField].
func (c *Conn) Field(name, value string) {
	switch known := hpack.NameOf(name); known {
	case 0:
		c.Out = c.encoder.Append(c.Out, name, value)
	case hpack.SetCookie:
		c.Out = c.encoder.AppendNever(c.Out, name, value)
	default:
		c.Out = c.encoder.AppendNamed(c.Out, known, value)
	}
}

// ContentLength adds the field Content-Length with the value n.
func (c *Conn) ContentLength(n int64) { c.Out = c.encoder.AppendContentLength(c.Out, n) }

// EndHead ends the head. end means that the answer has no body and no trailers; it must be false for an interim
// response.
func (c *Conn) EndHead(end bool) {
	st := c.writing
	c.endBlock(end)
	if !c.interim {
		st.answered = true
		c.bucket.credit(creditAnswered)
	}
	if end {
		c.endSend(st)
	}
}

// EndTrailers ends the trailers, and the answer.
func (c *Conn) EndTrailers() {
	st := c.writing
	c.endBlock(true)
	c.endSend(st)
}

// endBlock completes the frame header of the block, and splits a long block into several frames.
func (c *Conn) endBlock(end bool) {
	h := frameHeader{kind: frameHeaders, stream: c.writing.ID}
	if end {
		h.flags = flagEndStream
	}
	for begin := c.begin; ; begin += headerLength + maxFrame {
		h.length = len(c.Out) - begin - headerLength
		if h.length <= maxFrame {
			h.flags |= flagEndHeaders
			putHeader(c.Out[begin:], h)
			break
		}
		h.length = maxFrame
		putHeader(c.Out[begin:], h)
		rest := begin + headerLength + maxFrame
		c.Out = appendHeader(c.Out, frameHeader{})
		copy(c.Out[rest+headerLength:], c.Out[rest:])
		h.kind, h.flags = frameContinuation, 0
	}
	c.writing = nil
}

// Data sends piece, a part of a body, in as many DATA frames as necessary. end means that piece is the last part.
// The send windows must have room for piece (see [Conn.Room] and [Conn.NextSender]).
func (c *Conn) Data(st *Stream, piece []byte, end bool) {
	for {
		n := min(len(piece), maxFrame)
		last := n == len(piece)
		if !c.DataHeader(st, n, end && last) {
			return
		}
		c.Out = append(c.Out, piece[:n]...)
		if last {
			return
		}
		piece = piece[n:]
	}
}

// DataHeader appends the header of a DATA frame with n bytes of payload. n must not exceed 16 KiB or the send
// windows. The caller must append or send the payload next. If the stream has ended, DataHeader appends nothing and
// returns false.
func (c *Conn) DataHeader(st *Stream, n int, end bool) bool {
	if st.sendEnded {
		return false
	}
	h := frameHeader{length: n, kind: frameData, stream: st.ID}
	if end {
		h.flags = flagEndStream
	}
	c.Out = appendHeader(c.Out, h)
	c.sendWindow -= int64(n)
	st.sendWindow -= int64(n)
	c.bucket.credit(creditData + int32(n)/creditBytes)
	if st.queued {
		if st.sendWindow <= 0 {
			c.ready.remove(st)
		} else if st.priority.Incremental {
			c.ready.remove(st)
			c.ready.add(st)
		}
	}
	if end {
		c.endSend(st)
	}
	return true
}

// endSend marks the answer as complete.
func (c *Conn) endSend(st *Stream) {
	st.sendEnded = true
	c.Enough(st)
	if st.recvEnded {
		c.close(st, false)
	}
}
