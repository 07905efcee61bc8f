package stdhttp

import (
	"context"
	"sync"
	"time"
)

// Net/http closes the connections it takes for idle when it shuts down, also those on which a request is here
// and not read: on a busy machine their goroutines wait for a processor. And whatever request it reads from then on it drops
// without an answer. So the connections of HTTP/1.1 are ended before that, and requests that have come are waited for.

// Whether net/http takes a connection for idle.
const (
	notIdle uint32 = iota
	hasRead        // idle, but something of a request has been read
	idle           // or new
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
	if c.proxy == nil { // whose header is no request
		c.idle.Store(idle)
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

// end closes those that are idle, again and again, until all have been closed or ctx ends.
func (o *openConns) end(ctx context.Context, conns *sync.WaitGroup) {
	closed := make(chan struct{})
	go func() {
		conns.Wait()
		close(closed)
	}()
	const pause = 20 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		o.closeIdle()
		select {
		case <-tick.C:
		case <-closed:
			return
		case <-ctx.Done():
			return
		}
	}
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

// closeIdle closes idle connections on which nothing has come. Who sends a request now learns by a reset that nobody
// has read it.
func (o *openConns) closeIdle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		if c.idle.Load() == idle && unreadOf(c.Conn) == 0 {
			_ = c.Conn.Close()
		}
	}
}

// look reports whether a connection that net/http takes for idle has something that is not read, and whether one has
// something that has been.
func (o *openConns) look() (unread, begun bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		switch c.idle.Load() {
		case idle:
			unread = unread || unreadOf(c.Conn) > 0
		case hasRead:
			begun = true
		}
	}
	return unread, begun
}
