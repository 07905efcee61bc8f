package http2

import "github.com/dunlinhttp/dunlin/internal/hpack"

// An answer is written in the order in which it is sent:
//
//	if c.BeginHead(st, status) { c.Field(…) …; c.EndHead(end) }
//	c.Data(st, piece, end) …
//	if c.BeginTrailers(st) { c.Field(…) …; c.EndTrailers() }
//
// Between Begin and End, the caller must not call other methods or append to Out.
// Names may be in upper or lower case.

// BeginHead begins the head of an answer; a status below 200 is interim. It has no effect and returns false if the
// stream has ended or its answer is complete.
func (c *Conn) BeginHead(st *Stream, status int) bool {
	if !c.beginBlock(st) {
		return false
	}
	c.interim = status < 200
	c.Out = c.encoder.AppendStatus(c.Out, status)
	return true
}

// BeginTrailers begins the trailers of an answer, like BeginHead.
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

// Field adds a field. It is not checked: see [semantics.CheckField].
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

// ContentLength adds Content-Length.
func (c *Conn) ContentLength(n int64) { c.Out = c.encoder.AppendContentLength(c.Out, n) }

// EndHead ends the head. If end is true, there is no body; an interim head must not set it.
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

// endBlock sets the header of the frame and splits a long block.
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

// Data sends a part of a body in as many frames as necessary. The windows must have room for it (see [Conn.Room] and
// [Conn.NextSender]).
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

// DataHeader appends the header of a DATA frame with n bytes, at most 16 KB and at most the windows. The caller
// appends or sends the payload next. It returns false and appends nothing if the stream has ended.
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
