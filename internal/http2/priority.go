package http2

import "math/bits"

// A Priority is the priority of a stream (RFC 9218).
type Priority struct {
	Urgency     uint8 // 0 to 7, smaller is more urgent
	Incremental bool  // the client can use parts of the body
}

const urgencies = 8

var defaultPriority = Priority{Urgency: 3}

// ParsePriority parses the value of a Priority field (RFC 9218 §4): a dictionary of structured fields with the members u
// and i. If a member is missing or malformed, the value in p is used.
func ParsePriority(value []byte, p Priority) Priority {
	for len(value) > 0 {
		var member []byte
		member, value = nextMember(value)
		switch {
		case len(member) == 3 && member[0] == 'u' && member[1] == '=' && member[2]-'0' < urgencies:
			p.Urgency = member[2] - '0'
		case string(member) == "i", string(member) == "i=?1":
			p.Incremental = true
		case string(member) == "i=?0":
			p.Incremental = false
		}
	}
	return p
}

// nextMember removes the first member from a list. The member is returned without parameters and surrounding white
// space. A comma inside a string may end a member too early, but no member with a string is used.
func nextMember(list []byte) (member, rest []byte) {
	end := 0
	for end < len(list) && list[end] != ',' {
		end++
	}
	if end < len(list) {
		rest = list[end+1:]
	}
	member = list[:end]
	for i, c := range member {
		if c == ';' {
			member = member[:i]
			break
		}
	}
	for len(member) > 0 && (member[0] == ' ' || member[0] == '\t') {
		member = member[1:]
	}
	for len(member) > 0 && (member[len(member)-1] == ' ' || member[len(member)-1] == '\t') {
		member = member[:len(member)-1]
	}
	return member, rest
}

// A schedule contains the streams that have data to send and room in their windows, in a list for each urgency. The
// first stream of the most urgent list sends next. After a frame, an incremental stream moves to the end of its list.
// Other streams are sent to their end, in the order of their IDs (RFC 9218 §10).
type schedule struct {
	lists [urgencies]struct{ first, last *Stream }
	used  uint8 // a bit for each list that is not empty
}

// next returns the next stream to send, or nil.
func (s *schedule) next() *Stream {
	if s == nil || s.used == 0 {
		return nil
	}
	return s.lists[bits.TrailingZeros8(s.used)].first
}

func (s *schedule) add(st *Stream) {
	l := &s.lists[st.priority.Urgency]
	at := l.last // the incremental stream moves to the end of its list
	if !st.priority.Incremental {
		for at != nil && !at.priority.Incremental && at.ID > st.ID {
			at = at.prev
		}
	}
	st.queued, st.prev = true, at
	if at == nil {
		st.next = l.first
		l.first = st
	} else {
		st.next = at.next
		at.next = st
	}
	if st.next == nil {
		l.last = st
	} else {
		st.next.prev = st
	}
	s.used |= 1 << st.priority.Urgency
}

func (s *schedule) remove(st *Stream) {
	l := &s.lists[st.priority.Urgency]
	if st.prev == nil {
		l.first = st.next
	} else {
		st.prev.next = st.next
	}
	if st.next == nil {
		l.last = st.prev
	} else {
		st.next.prev = st.prev
	}
	if l.first == nil {
		s.used &^= 1 << st.priority.Urgency
	}
	st.next, st.prev, st.queued = nil, nil, false
}

// prioritize changes the priority of a stream.
func (c *Conn) prioritize(st *Stream, p Priority) {
	queued := st.queued
	if queued {
		c.ready.remove(st)
	}
	st.priority = p
	if queued {
		c.ready.add(st)
	}
}

// Want records that the stream has data to send and waits for its turn. From then on [Conn.NextSender] may return the
// stream, until [Conn.Enough] is called for it.
func (c *Conn) Want(st *Stream) {
	st.wants = true
	if !st.queued && st.sendWindow > 0 && !st.sendEnded {
		c.enqueue(st)
	}
}

// enqueue adds a stream to the schedule.
func (c *Conn) enqueue(st *Stream) {
	if c.ready == nil {
		c.ready = new(schedule)
	}
	c.ready.add(st)
}

// Enough records that the stream has no more data to send at present.
func (c *Conn) Enough(st *Stream) {
	st.wants = false
	if st.queued {
		c.ready.remove(st)
	}
}

// NextSender returns the stream that sends next, and the number of bytes of its body that it may send: at most one
// frame, and at most the send windows. It returns nil if no stream can send.
func (c *Conn) NextSender() (st *Stream, n int) {
	st = c.ready.next()
	if st == nil || c.sendWindow <= 0 {
		return nil, 0
	}
	return st, int(min(st.sendWindow, c.sendWindow, maxFrame))
}

// Blocked reports whether the send window of the stream or of the connection is exhausted.
func (c *Conn) Blocked(st *Stream) bool { return st.sendWindow <= 0 || c.sendWindow <= 0 }

// Shut reports whether the send window of the connection is exhausted.
func (c *Conn) Shut() bool { return c.sendWindow <= 0 }

// Window returns the size of the stream's send window, in bytes. The window of the connection may be smaller.
func (c *Conn) Window(st *Stream) int64 { return int64(max(st.sendWindow, 0)) }

// Room returns the number of bytes of a body that the stream may send immediately, without [Conn.Want]. It is 0 while a
// stream with the same or a higher urgency waits.
func (c *Conn) Room(st *Stream) int {
	if c.ready != nil && c.ready.used&(1<<(st.priority.Urgency+1)-1) != 0 {
		return 0
	}
	return int(max(min(st.sendWindow, c.sendWindow), 0))
}
