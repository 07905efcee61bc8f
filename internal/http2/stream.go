package http2

// A Stream is a request and its answer. The owner of the connection may use it from the event RequestBegun until it calls
// [Conn.Done]. Events may still refer to the stream after Done, until the stream is closed. After Done and the end of the stream,
// the next call of [Conn.Next] or [Conn.Rest] reuses its memory.
type Stream struct {
	ID    uint32
	Owner any  // value of the owner; this package does not use it
	Roomy bool // the owner has memory for the whole body: the window grows even if Conn.Tight is set

	recvEnded bool // END_STREAM was received
	sendEnded bool // END_STREAM was sent
	closed    bool // ended on both sides, or reset by one side
	running   bool // Done has not been called
	answered  bool // a final head was sent
	wants     bool // see Conn.Want
	queued    bool // the stream is in a list of the schedule
	priority  Priority

	begun      int64 // time of opening, comparable with Conn.Now
	sendWindow int64 // bytes that may be sent; may be negative after a SETTINGS frame reduced the window
	recvWindow int32 // bytes that may be received; may be negative after the server's SETTINGS reduced the window
	window     int32 // advertised size of the receive window
	unread     int32 // bytes that were received and not yet read
	set        int32 // part of unread that was returned to the connection's window, see Conn.Unclaimed
	declared   int64 // bytes of the body that are missing according to Content-Length, -1 without Content-Length

	next, prev *Stream
}

// Closed reports whether the stream has ended in both directions or was reset.
func (st *Stream) Closed() bool { return st.closed }

// Ended reports whether the request is complete.
func (st *Stream) Ended() bool { return st.recvEnded }

// Sent reports whether the whole answer was sent.
func (st *Stream) Sent() bool { return st.sendEnded }

// Answered reports whether the head of a final answer was sent.
func (st *Stream) Answered() bool { return st.answered }

// Unread returns the number of received bytes that the owner has not yet passed to [Conn.Consumed].
func (st *Stream) Unread() int { return int(st.unread) }

// Priority returns the stream's priority.
func (st *Stream) Priority() Priority { return st.priority }

// A Pool holds memory that the connections of one event loop reuse. Only one goroutine may use it at a time.
type Pool struct {
	streams []*Stream
	request Request
}

// keptStreams is the maximum number of unused streams that a pool keeps.
const keptStreams = 1024

// keptList is the maximum size in bytes of a list of fields that a pool keeps.
const keptList = 64 << 10

func (p *Pool) get() *Stream {
	if n := len(p.streams); n > 0 {
		st := p.streams[n-1]
		p.streams = p.streams[:n-1]
		return st
	}
	return new(Stream)
}

func (p *Pool) put(st *Stream) {
	*st = Stream{}
	if len(p.streams) < keptStreams {
		p.streams = append(p.streams, st)
	}
}

// find returns the stream with the given ID, or nil. It also finds a closed stream until its action has returned.
func (c *Conn) find(id uint32) *Stream {
	low, high := 0, len(c.streams)
	for low < high {
		if mid := (low + high) / 2; c.streams[mid].ID < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(c.streams) && c.streams[low].ID == id {
		return c.streams[low]
	}
	return nil
}

// open creates a stream. Its ID must be larger than that of all other streams.
func (c *Conn) open(id uint32) *Stream {
	st := c.pool.get()
	st.ID, st.running, st.declared, st.begun = id, true, -1, c.Now
	st.sendWindow = int64(c.peerWindow)
	st.window = int32(c.lim.StreamWindow)
	st.recvWindow = c.firstWindow()
	c.streams = append(c.streams, st)
	return st
}

// firstWindow returns the initial receive window of a stream.
func (c *Conn) firstWindow() int32 {
	if !c.acknowledged {
		return initialWindow
	}
	return int32(c.lim.StreamWindow)
}

// close marks the stream as ended in both directions. byUs means that the server has closed it, by Reset, Part or failStream. If
// Done was called, close removes the stream.
func (c *Conn) close(st *Stream, byUs bool) {
	if st.closed {
		return
	}
	underWay := st.recvWindow
	if st.recvEnded {
		underWay = 0
	}
	st.closed, st.recvEnded, st.sendEnded = true, true, true
	c.Enough(st)
	if byUs {
		c.recordCut(st.ID, underWay)
	} else {
		c.over.addClosed(st.ID)
	}
	c.unread -= int64(st.unread - st.set)
	st.unread, st.set = 0, 0
	if c.dataStream == st {
		c.dataStream = nil
	}
	if !st.running {
		c.remove(st)
	}
}

// recordCut records a stream that the server has reset. The number of records is limited. If the oldest record is removed while its
// RST_STREAM is still pending (see Part), recordCut sends that RST_STREAM now.
func (c *Conn) recordCut(id uint32, underWay int32) {
	if forgotten := c.over.addCut(id, underWay, 2*c.lim.MaxStreams); forgotten > 0 {
		c.Out = appendReset(c.Out, forgotten, NoError)
	}
}

// Done records that the owner no longer uses the stream, because its action has returned. If the stream is not yet closed, the rest
// of its answer is still sent.
func (c *Conn) Done(st *Stream) {
	st.running = false
	if st.closed {
		c.remove(st)
		c.refill() // the rest of the body will not be read
	}
}

// remove removes the stream from the streams of the connection. Its memory is reused only from the next call of Next on, because an
// event may still refer to the stream.
func (c *Conn) remove(st *Stream) {
	low := 0
	for c.streams[low] != st {
		low++
	}
	copy(c.streams[low:], c.streams[low+1:])
	c.streams[len(c.streams)-1] = nil
	c.streams = c.streams[:len(c.streams)-1]
	st.next = c.removed
	c.removed = st
}

// recycle returns the memory of removed streams to the pool.
func (c *Conn) recycle() {
	for c.removed != nil {
		st := c.removed
		c.removed = st.next
		c.pool.put(st)
	}
}

// Reset resets the stream with an error code, unless the stream has ended.
func (c *Conn) Reset(st *Stream, code Code) {
	if !st.closed {
		c.Out = appendReset(c.Out, st.ID, code)
		c.close(st, true)
		c.refill()
	}
}
