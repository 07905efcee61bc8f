package stdhttp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Net/http closes the connections it takes for idle when it shuts down, also those on which a request is here
// and not read: on a busy machine their goroutines wait for a processor. And whatever request it reads from then on it drops
// without an answer. So idle connections of HTTP/1.1 are ended before that, by the goroutines that read from them: nobody
// else knows that nothing was read.

// What net/http does with a connection:
//
//	change              by            when
//	busy → between      ConnState     an answer is sent; a new connection begins here
//	between → waiting   Read          it is about to wait for a request: none was in a buffer
//	waiting → begun     Read          something has come
//	waiting → ending    the drain     nothing has come; the read is interrupted
//	ending → begun      Read          something has come after all
//	any → busy          ConnState     there is a request
//
// A read that is interrupted and has brought nothing ends the connection.
const (
	busy uint32 = iota
	between
	waiting
	begun
	ending
)

// setIdle notes what net/http does with a connection; c is nil for one that is not ours.
func (c *timedConn) setIdle(state uint32) {
	if c != nil {
		c.idle.Store(state)
	}
}

// end interrupts the read for a request unless something has come, or is being read.
func (c *timedConn) end() {
	if c.idle.Load() != waiting || unreadOf(c.Conn) > 0 {
		return
	}
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if c.idle.CompareAndSwap(waiting, ending) {
		_ = c.reads.put(c.Conn, time.Unix(1, 0)) // an error would show in the read
	}
}

// keep takes end back.
func (c *timedConn) keep() {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if c.idle.CompareAndSwap(ending, begun) {
		_ = c.reads.put(c.Conn, c.reads.wanted)
	}
}

// ended is asked when the read has been interrupted, and has brought nothing: it reports whether that is the connection's
// end. Who sends a request now learns by a reset that nobody has read it.
func (c *timedConn) ended() bool {
	if unreadOf(c.Conn) > 0 {
		c.keep()
		return false
	}
	if !c.secure { // else net/http says so to the client
		_ = c.Conn.Close()
	}
	return true
}

// readRequest reads from the connection while nothing is being answered.
func (c *timedConn) readRequest(p []byte) (int, error) {
	c.idle.CompareAndSwap(between, waiting)
	n, err := c.read(p)
	if n > 0 {
		c.noteBegun()
	}
	return n, err
}

// noteBegun notes that something of a request has come.
func (c *timedConn) noteBegun() {
	if !c.idle.CompareAndSwap(waiting, begun) && c.idle.Load() == ending {
		c.keep()
	}
}

// openConns are the connections of a server.
type openConns struct {
	count   atomic.Int64
	unasked atomic.Int64  // of these, those that nothing has been asked of yet
	none    chan struct{} // holds something after count or unasked has come to 0

	mu  sync.Mutex
	all map[*timedConn]struct{} // without those of another server
}

func newOpenConns() openConns {
	return openConns{none: make(chan struct{}, 1), all: map[*timedConn]struct{}{}}
}

// add counts a new connection; c is nil if it is not ours.
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

// remove is for one that has been closed or hijacked.
func (o *openConns) remove(c *timedConn) {
	if c != nil {
		c.asked()
		o.mu.Lock()
		delete(o.all, c)
		o.mu.Unlock()
	}
	o.less(&o.count)
}

// less takes one from a count.
func (o *openConns) less(count *atomic.Int64) {
	if count.Add(-1) > 0 {
		return
	}
	select {
	case o.none <- struct{}{}:
	default:
	}
}

// asked notes that c has been asked something, or will not be.
func (c *timedConn) asked() {
	if c.unasked.Load() == nil {
		return
	}
	if o := c.unasked.Swap(nil); o != nil {
		o.less(&o.unasked)
	}
}

// A rest is what of the open connections has not come to its end, of those of HTTP/1.1.
type rest struct {
	idle  int // kept alive, and soon to be ended or busy
	begun int // something of a request has come
}

// noteBusy notes which connections are busy when the drain begins.
func (o *openConns) noteBusy() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		c.wasBusy = c.idle.Load() == busy
	}
}

// endIdle ends connections that were kept alive and wait for a request, those that have been busy since the drain began
// after so long, and with all new ones that have sent nothing, too.
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
			if c.wasBusy && c.rests.IsZero() {
				c.rests = now
			}
			if !c.wasBusy || now.Sub(c.rests) >= last {
				waits = append(waits, c)
			}
		case between, ending:
			r.idle++
		case begun:
			r.begun++
			c.wasBusy, c.rests = true, time.Time{}
		default:
			c.wasBusy, c.rests = true, time.Time{}
		}
	}
	o.mu.Unlock()
	for _, c := range waits {
		c.end()
	}
	return r
}

// wait waits until a count has come to 0, and so long at most; the more connections there are, the longer. It is
// false when ctx has ended.
func (o *openConns) wait(ctx context.Context, most time.Duration) bool {
	pause := 5*time.Millisecond + time.Duration(o.count.Load())*5*time.Microsecond
	timer := time.NewTimer(max(min(pause, most), 0))
	defer timer.Stop()
	select {
	case <-o.none:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// atMostHalf returns d, or half of what ctx has left if that is less.
func atMostHalf(ctx context.Context, d time.Duration) time.Duration {
	if until, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(until)/2)
	}
	return d
}
