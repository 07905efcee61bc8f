package stdhttp

import (
	"context"
	"sync"
	"time"
)

// Net/http closes the connections it takes for idle when it shuts down, also those on which a request is here
// and not read: on a busy machine their goroutines wait for a processor. And it closes those on which it reads a request
// after that, their first, without an answer. So such requests are waited for before.

// Whether net/http takes a connection for idle.
const (
	notIdle uint32 = iota
	hasRead        // idle, but something of a request has been read
	idle
	fresh // likewise, and nothing has ever been read
)

// setIdle notes what net/http takes a connection for. One of another server has no such note.
func (c *timedConn) setIdle(state uint32) {
	if c != nil {
		c.idle.Store(state)
	}
}

// openConns are the connections of a server.
type openConns struct {
	mu  sync.Mutex
	all map[*timedConn]struct{}
}

func (o *openConns) add(c *timedConn) {
	if c == nil || c.closed != nil { // or whoever has accepted it has read from it
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*timedConn]struct{}{}
	}
	o.all[c] = struct{}{}
	if c.proxy == nil {
		c.idle.Store(fresh)
	}
}

func (o *openConns) remove(c *timedConn) {
	if c == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
}

// awaitRead waits until nothing is here on idle connections that is not read, and for lastRequests at most until what
// was read on one is a request.
func (o *openConns) awaitRead(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; {
		unread, begun := o.look()
		if !unread && (!begun || time.Since(began) > lastRequests) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// closeFresh closes those on which nothing has come: who sends the first request now learns by a reset that nobody has
// read it. It reports whether something has come on others.
func (o *openConns) closeFresh() (come bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		switch {
		case c.idle.Load() != fresh:
		case unreadOf(c.Conn) > 0:
			come = true
		default:
			_ = c.Conn.Close()
		}
	}
	return come
}

// look reports whether a connection that net/http takes for idle has something that is not read, and whether one has
// something that has been.
func (o *openConns) look() (unread, begun bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		switch c.idle.Load() {
		case idle, fresh:
			unread = unread || unreadOf(c.Conn) > 0
		case hasRead:
			begun = true
		}
	}
	return unread, begun
}
