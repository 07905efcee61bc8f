package http2

// A Stream is a request and its answer. Its owner has it from the event Request until
// it calls [Conn.Done], and must keep it no longer than the events that follow; after both
// the stream is over and Done was called it is used for another.
type Stream struct {
	ID    uint32
	Owner any  // the owner's
	Roomy bool // its owner has memory for all of its body: the window grows though Conn.Tight is set

	recvEnded bool // END_STREAM has come
	sendEnded bool // ... and was sent
	closed    bool // on the wire: ended on both sides, or reset by either
	running   bool // Done has not been called
	answered  bool // a final head was sent
	wants     bool // see Conn.Want
	queued    bool // in a list of the schedule
	priority  Priority

	begun      int64 // when it was opened, in the time of Conn.Now
	sendWindow int64 // bytes that may be sent; less than 0 after a SETTINGS
	recvWindow int32 // bytes that may come; less than 0 likewise
	window     int32 // what recvWindow and unread come to, as far as the client knows
	unread     int32 // bytes that came and were not read
	set        int32 // of these, how many count in this window alone, see Conn.Unclaimed
	declared   int64 // what is still to come by Content-Length, -1 without one

	next, prev *Stream
}

// Closed reports whether nothing more can be sent or received.
func (st *Stream) Closed() bool { return st.closed }

// Ended reports whether all of the request has come.
func (st *Stream) Ended() bool { return st.recvEnded }

// Sent reports whether all of the answer was sent.
func (st *Stream) Sent() bool { return st.sendEnded }

// Answered reports whether the head of a final answer was sent.
func (st *Stream) Answered() bool { return st.answered }

// Unread returns how many bytes of the body came that [Conn.Consumed] was not called for.
func (st *Stream) Unread() int { return int(st.unread) }

// Priority returns the stream's priority.
func (st *Stream) Priority() Priority { return st.priority }

// A Pool has what the connections of one event loop take turns to use: it is used by one
// goroutine at a time.
type Pool struct {
	streams []*Stream
	request Request
}

// keptStreams bounds the streams that a pool keeps: what a burst has taken goes back.
const keptStreams = 1024

// keptList is the largest list of fields, in bytes, that a pool keeps.
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

// find returns the stream with a number, nil when it is not open and no action runs for it.
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

// open makes a stream, whose number is larger than all others'.
func (c *Conn) open(id uint32) *Stream {
	st := c.pool.get()
	st.ID, st.running, st.declared, st.begun = id, true, -1, c.Now
	st.sendWindow = int64(c.peerWindow)
	st.window = int32(c.lim.StreamWindow)
	st.recvWindow = c.firstWindow()
	c.streams = append(c.streams, st)
	return st
}

// firstWindow returns how many bytes a client may send on a stream that it opens.
func (c *Conn) firstWindow() int32 {
	if !c.acknowledged {
		return initialWindow
	}
	return int32(c.lim.StreamWindow)
}

// close notes that the stream is over on the wire. It goes when it has no owner.
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
		c.noteCut(st.ID, underWay)
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

// noteCut remembers a stream that we have reset. The client of one that is forgotten for it is told before, see Part.
func (c *Conn) noteCut(id uint32, underWay int32) {
	if forgotten := c.over.addCut(id, underWay, 2*c.lim.MaxStreams); forgotten > 0 {
		c.Out = appendReset(c.Out, forgotten, NoError)
	}
}

// Done says that the owner is done with the stream: its action has returned. What it may have
// left to send it goes on sending when it is its turn.
func (c *Conn) Done(st *Stream) {
	st.running = false
	if st.closed {
		c.remove(st)
		c.refill() // what was not read of its body will not be
	}
}

// remove gives the stream's place to others. Its memory is used again from the next call
// of Next on: an event may still name it.
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

// recycle gives the memory of removed streams back.
func (c *Conn) recycle() {
	for c.removed != nil {
		st := c.removed
		c.removed = st.next
		c.pool.put(st)
	}
}

// Reset ends the stream with a code, unless it is over.
func (c *Conn) Reset(st *Stream, code Code) {
	if !st.closed {
		c.Out = appendReset(c.Out, st.ID, code)
		c.close(st, true)
		c.refill()
	}
}
