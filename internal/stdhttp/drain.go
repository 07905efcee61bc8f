package stdhttp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// At shutdown, net/http closes the connections that it considers idle. Among them are connections on which a request
// has arrived but was not yet read, because their goroutines wait for a processor. net/http also drops every request
// that it reads after the shutdown has begun, without an answer. Therefore idle HTTP/1.1 connections are closed
// before net/http is shut down. The goroutine that reads from a connection closes it, because only this goroutine
// knows that nothing was read.

// The state of a connection in net/http changes as follows:
//
//	change              by            when
//	busy → between      ConnState     an answer is sent; the first state of a new connection
//	between → waiting   Read          it is about to wait for a request: none is buffered
//	waiting → begun     Read          a part of a request has arrived
//	waiting → ending    the drain     nothing has arrived; the read is interrupted
//	begun → ending      makeRoom      the rest does not arrive; the read is interrupted
//	ending → begun      Read          a part of a request has arrived meanwhile
//	any → busy          ConnState     a request was read
//
// If an interrupted read returns no data, the connection ends.
const (
	busy uint32 = iota
	between
	waiting
	begun
	ending
)

// setIdle records the state of a connection in net/http. c is nil for a connection that does not belong to a Server.
func (c *timedConn) setIdle(state uint32) {
	if c != nil {
		if c.idle.Swap(state) == ending { // the request was complete and is answered
			c.reads.mu.Lock()
			_ = c.reads.put(c.Conn, c.reads.wanted)
			c.reads.mu.Unlock()
		}
	}
}

// end interrupts the wait for a request or for the rest of a request. It has no effect if the state is not the
// argument from, or if more input has arrived.
func (c *timedConn) end(from uint32) {
	if c.idle.Load() != from || unreadOf(c.Conn) > 0 {
		return
	}
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if c.idle.CompareAndSwap(from, ending) {
		_ = c.reads.put(c.Conn, time.Unix(1, 0)) // if this fails, the read returns the error
	}
}

// keep continues a read that the method end has interrupted.
func (c *timedConn) keep() {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if c.idle.CompareAndSwap(ending, begun) {
		_ = c.reads.put(c.Conn, c.reads.wanted)
	}
}

// ended reports whether an interrupted read that returned no data ends the connection. If a client sends a request
// later, the connection is reset. So the client knows that the request was not read.
func (c *timedConn) ended() bool {
	if unreadOf(c.Conn) > 0 {
		c.keep()
		return false
	}
	if !c.secure { // with TLS, net/http informs the client
		_ = c.Conn.Close()
	}
	return true
}

// readRequest reads from the connection while no request is running.
func (c *timedConn) readRequest(p []byte) (int, error) {
	c.idle.CompareAndSwap(between, waiting)
	n, err := c.read(p)
	if n > 0 {
		c.noteBegun()
	}
	return n, err
}

// noteBegun records that a part of a request has arrived.
func (c *timedConn) noteBegun() {
	if !c.idle.CompareAndSwap(waiting, begun) && c.idle.Load() == ending {
		c.keep()
	}
}

// openConns has the connections of a server.
type openConns struct {
	count   atomic.Int64
	unasked atomic.Int64  // number of connections that have not received a request
	none    chan struct{} // receives a value when count or unasked has become 0

	mu  sync.Mutex
	all map[*timedConn]struct{} // connections that belong to the Server
}

func newOpenConns() openConns {
	return openConns{none: make(chan struct{}, 1), all: map[*timedConn]struct{}{}}
}

// add counts a new connection. c is nil for a connection that does not belong to the Server.
func (o *openConns) add(c *timedConn) {
	o.count.Add(1)
	if c == nil {
		return
	}
	o.unasked.Add(1)
	c.unasked.Store(o)
	c.idle.Store(between)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[c] = struct{}{}
}

// remove removes a connection that was closed or hijacked.
func (o *openConns) remove(c *timedConn) {
	if c != nil {
		c.asked()
		o.mu.Lock()
		delete(o.all, c)
		o.mu.Unlock()
	}
	o.less(&o.count)
}

// less subtracts 1 from a count.
func (o *openConns) less(count *atomic.Int64) {
	if count.Add(-1) > 0 {
		return
	}
	select {
	case o.none <- struct{}{}:
	default:
	}
}

// asked records that c has received a request, or that it will not receive one.
func (c *timedConn) asked() {
	if c.unasked.Load() == nil {
		return
	}
	if o := c.unasked.Swap(nil); o != nil {
		o.less(&o.unasked)
	}
}

// A rest has numbers of HTTP/1.1 connections that are still open.
type rest struct {
	idle  int // connections that wait for a request
	begun int // connections on which a part of a request has arrived
}

// noteBusy records which connections are busy at the start of the drain.
func (o *openConns) noteBusy() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		c.wasBusy = c.idle.Load() == busy
	}
}

// endIdle closes keep-alive connections that wait for a request. A connection that was busy during the drain is
// closed only after it has been idle for the duration last. If all is true, endIdle also closes new connections that
// have not sent anything. It returns the numbers of the connections that were open.
func (o *openConns) endIdle(all bool, last time.Duration) (r rest) {
	var waits []*timedConn
	now := time.Now()
	o.mu.Lock()
	for c := range o.all {
		kept := c.unasked.Load() == nil
		if c.http2.Load() || !kept && !all {
			continue
		}
		switch c.idle.Load() {
		case waiting:
			r.idle++
			if c.wasBusy && c.idleSince.IsZero() {
				c.idleSince = now
			}
			if !c.wasBusy || now.Sub(c.idleSince) >= last {
				waits = append(waits, c)
			}
		case between, ending:
			r.idle++
		case begun:
			r.begun++
			c.wasBusy, c.idleSince = true, time.Time{}
		default:
			c.wasBusy, c.idleSince = true, time.Time{}
		}
	}
	o.mu.Unlock()
	for _, c := range waits {
		c.end(waiting)
	}
	return r
}

// wait waits until a count becomes 0, or for a pause, after which the caller must check the connections again. The
// pause is longer if there are many connections, but at most limit. wait returns false if ctx has ended.
func (o *openConns) wait(ctx context.Context, limit time.Duration) bool {
	pause := 5*time.Millisecond + time.Duration(o.count.Load())*5*time.Microsecond
	timer := time.NewTimer(max(min(pause, limit), 0))
	defer timer.Stop()
	select {
	case <-o.none:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// atMostHalf returns d, or half of the time until the deadline of ctx if that is shorter.
func atMostHalf(ctx context.Context, d time.Duration) time.Duration {
	if until, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(until)/2)
	}
	return d
}
