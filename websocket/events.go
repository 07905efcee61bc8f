package websocket

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// An event is a call of a function of Options.
type event uint8

const (
	eventOpen event = iota
	eventMessage
	eventDrain
	eventClose
)

// run calls the function of an event.
func (c *Conn) run(e event, m Message) {
	switch e {
	case eventOpen:
		c.h.o.Open(c)
	case eventMessage:
		c.h.o.Message(c, m)
	case eventDrain:
		c.h.o.Drain(c)
	case eventClose:
		c.mu.Lock()
		end := c.rare.end
		c.mu.Unlock()
		c.h.o.Close(c, end)
	}
}

// call calls the function of an event on the goroutine that owns the connection. The function may block. call reports whether the
// goroutine still owns the connection. done is the number of input bytes consumed so far. busy needs no lock here: other goroutines
// read it only after a takeover.
func (c *Conn) call(t exchange.Turn, done int, e event, m Message) bool {
	stat := &c.h.stat
	c.busy = true
	t.EnterPart(done)
	t.Watch(stat.Watched())
	c.run(e, m)
	waited := t.Waited()
	if !t.Leave() {
		c.returned(nil)
		return false
	}
	c.busy = false
	if t.Inline() {
		stat.Stayed(waited, t.Now())
	}
	return true
}

// returned ends a job, or a call that has lost the connection, and continues with the input. p has the memory of the message.
func (c *Conn) returned(p *partial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p != nil {
		c.release(p)
	}
	c.busy = false
	if c.phase == gone {
		c.tellEnd()
		return
	}
	c.wakePending = true
	c.peer.Wake()
}

// deliver passes a message to Options.Message: at once, or on a worker if the functions are known to block or too many calls wait. p
// has the memory of the message. p is nil for a message in the input.
func (c *Conn) deliver(t exchange.Turn, done int, m Message, p *partial) step {
	if t.Inline() && c.h.stat.Suspect() && c.h.stat.ToWorker(t, false) {
		return c.submit(t, m, p)
	}
	stays := c.call(t, done, eventMessage, m)
	if p != nil {
		c.release(p)
	}
	if !stays {
		return lost
	}
	return next
}

// A job is a message that waits for a worker.
type job struct {
	m Message
	p *partial
}

// submit makes the message a job for a worker.
func (c *Conn) submit(t exchange.Turn, m Message, p *partial) step {
	m, p, ok := c.own(m, p)
	if !ok {
		c.fail(errMemory)
		return stop
	}
	c.mu.Lock()
	c.busy = true
	c.more().job = &job{m, p}
	c.mu.Unlock()
	c.peer.Submit(t)
	return stop
}

// own copies a message out of the input, unless p has its memory already. It returns false if there is no memory for the copy.
func (c *Conn) own(m Message, p *partial) (Message, *partial, bool) {
	if p != nil {
		return m, p, true
	}
	p = new(partial)
	if !c.grow(p, len(m.Data)) {
		return m, nil, false
	}
	m.Data = append(p.b, m.Data...)
	return m, p, true
}

// takeJob returns the job of submit.
func (c *Conn) takeJob() *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.rare.job
	c.rare.job = nil
	return j
}

// Run implements exchange.Protocol. A worker calls it: it passes the message of the job to Options.Message.
func (p *protocol) Run() {
	c := (*Conn)(p)
	j := c.takeJob()
	returned := false
	defer func() {
		if !returned {
			c.release(j.p)
		}
	}()
	c.run(eventMessage, j.m)
	returned = true
	c.returned(j.p)
}

// Overdue implements exchange.Protocol. It closes a connection whose job has waited too long for a worker.
func (p *protocol) Overdue() {
	c := (*Conn)(p)
	j := c.takeJob()
	c.mu.Lock()
	c.failWith(TryAgainLater, "server is overloaded")
	c.mu.Unlock()
	c.returned(j.p)
}

// Blocked implements exchange.Protocol. It records that a function has blocked its event loop.
func (p *protocol) Blocked(now int64) { p.h.stat.Waited(now) }

// Abandoned implements exchange.Protocol. It closes a connection whose function panicked or ended its goroutine.
func (p *protocol) Abandoned() {
	c := (*Conn)(p)
	c.mu.Lock()
	c.failWith(InternalError, "internal error")
	c.mu.Unlock()
	c.returned(nil)
}

// pass passes a message to Read. p has the memory of the message. p is nil for a message in the input.
func (c *Conn) pass(m Message, p *partial) step {
	m, p, ok := c.own(m, p)
	if !ok {
		c.fail(errMemory)
		return stop
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.more()
	if r.reader != nil {
		r.reader <- m
		r.reader = nil
		c.release(p) // the memory now belongs to the application
		return next
	}
	r.next, r.held = &m, p.charged
	return stop
}

// serve calls Options.Serve, and closes the connection after its return.
func (c *Conn) serve() {
	ctx, stop := context.WithCancel(context.Background())
	c.mu.Lock()
	c.more().stop = stop
	if c.phase == gone {
		stop()
	}
	c.mu.Unlock()
	code, reason := InternalError, "internal error"
	defer func() { c.Close(code, reason) }()
	c.guard(func() {
		err := c.h.o.Serve(ctx, c)
		if err == nil || c.isOver() {
			code, reason = Normal, ""
			return
		}
		c.peer.Log().Error("websocket: Serve failed", "error", err.Error())
	})
}

func (c *Conn) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase >= over
}

// guard calls f and logs a panic.
func (c *Conn) guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			c.peer.Log().Error("websocket: panic in a function", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	f()
}
