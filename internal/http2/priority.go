package http2

import "math/bits"

// A Priority is what RFC 9218 says of a stream.
type Priority struct {
	Urgency     uint8 // 0 to 7, the smaller the sooner
	Incremental bool  // parts of the body are of use
}

const urgencies = 8

var defaultPriority = Priority{Urgency: 3}

// ParsePriority reads the value of a Priority field (RFC 9218 §4): a dictionary of
// structured fields, of which u and i count. What it does not say, or says wrongly, is
// as in p.
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

// nextMember cuts off the first member of a list, without the white space around it and
// without its parameters. A comma in a string may cut too much: no such member counts.
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

// A schedule has the streams that have something to send and room in their windows: a list
// for each urgency. The first of the most urgent is next. One that is incremental goes to
// the end of its list when it has sent a frame; any other is sent to its end, in the order
// of their numbers (RFC 9218 §10).
type schedule struct {
	lists [urgencies]struct{ first, last *Stream }
	used  uint8 // a bit for each list that is not empty
}

// next returns the stream whose turn it is, nil for none.
func (s *schedule) next() *Stream {
	if s == nil || s.used == 0 {
		return nil
	}
	return s.lists[bits.TrailingZeros8(s.used)].first
}

func (s *schedule) add(st *Stream) {
	l := &s.lists[st.priority.Urgency]
	at := l.last // it goes behind
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

// prioritize gives a stream another priority.
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

// Want says that the stream has something to send that must wait: it gets its turn from
// [Conn.Turn] until [Conn.Enough].
func (c *Conn) Want(st *Stream) {
	st.wants = true
	if !st.queued && st.sendWindow > 0 && !st.sendEnded {
		c.enqueue(st)
	}
}

// enqueue puts a stream in the schedule.
func (c *Conn) enqueue(st *Stream) {
	if c.ready == nil {
		c.ready = new(schedule)
	}
	c.ready.add(st)
}

// Enough says that the stream has nothing more to send at present.
func (c *Conn) Enough(st *Stream) {
	st.wants = false
	if st.queued {
		c.ready.remove(st)
	}
}

// Turn returns the stream that is to send next, and how many bytes of its body: at most
// a frame, and what its windows allow. It is nil when none may.
func (c *Conn) Turn() (st *Stream, n int) {
	st = c.ready.next()
	if st == nil || c.sendWindow <= 0 {
		return nil, 0
	}
	return st, int(min(st.sendWindow, c.sendWindow, maxFrame))
}

// Blocked reports whether a window is closed, be it the connection's, so that the stream may send
// nothing.
func (c *Conn) Blocked(st *Stream) bool { return st.sendWindow <= 0 || c.sendWindow <= 0 }

// Shut reports whether the connection's window is closed.
func (c *Conn) Shut() bool { return c.sendWindow <= 0 }

// Window returns how much the stream's own window lets out.
func (c *Conn) Window(st *Stream) int64 { return int64(max(st.sendWindow, 0)) }

// Room returns how many bytes of a body the stream may send at once, without waiting for
// its turn: none while a stream waits that is as urgent.
func (c *Conn) Room(st *Stream) int {
	if c.ready != nil && c.ready.used&(1<<(st.priority.Urgency+1)-1) != 0 {
		return 0
	}
	return int(max(min(st.sendWindow, c.sendWindow), 0))
}
