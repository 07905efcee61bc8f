//go:build linux

package engine

import "github.com/dunlinhttp/dunlin/internal/prefetch"

// A thousand connections do not fit the caches. While one is served, the memory of those that come next is asked for, in
// three steps, each of which finds there what the one before has asked for:
//
//	the next but two: its Conn ──▶ the next but one: its tlsmem.Conn ──▶ the next: what that needs, keys and all

// prefetchEvents takes these steps for the events from l.next on.
func (l *loop) prefetchEvents() {
	if c := l.nextBut(2); c != nil {
		prefetch.Value(c)
	}
	if c := l.nextBut(1); c != nil {
		c.prefetchTLS()
	}
	if c := l.nextBut(0); c != nil {
		c.prefetchKeys()
	}
}

// nextBut returns the connection of an event that is still to be served, nil if there is none.
func (l *loop) nextBut(n int) *Conn {
	if n += l.next; n >= l.n || l.events[n].Fd < 0 {
		return nil
	}
	return l.conns[l.events[n].Fd]
}

// prefetchVisits takes the last two of them for what is in a queue, where each was looked at when it was put there.
func (q *connQueue) prefetchVisits() {
	if rest := q.conns[q.at:]; len(rest) > 1 {
		rest[1].prefetchTLS()
		rest[0].prefetchKeys()
	}
}

func (c *Conn) prefetchTLS() {
	if t := c.ownTLS(); t != nil {
		prefetch.Value(t)
		prefetch.Value(t.conn)
	}
}

func (c *Conn) prefetchKeys() {
	if t := c.ownTLS(); t != nil {
		t.conn.Prefetch()
	}
}

// ownTLS returns the TLS of a connection that is the loop's and has shaken hands, nil for another.
func (c *Conn) ownTLS() *tlsState {
	if c.state.Load() == atLoop {
		if t := c.secure(); t != nil && t.phase == tlsOpen {
			return t
		}
	}
	return nil
}
