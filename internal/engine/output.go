//go:build linux

package engine

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// owned is a buffer of WriteOwned: it is sent after Out[:after].
type owned struct {
	after    int
	b        []byte
	releaser Releaser
	sealed   int // bytes of b that were sent as records, see tlswrite.go
}

func (o *owned) release() {
	if o.releaser != nil {
		o.releaser.Release()
	}
}

// outQueue has the output that a connection's socket did not accept, oldest first.
type outQueue struct {
	head, tail *outNode
	bytes      int64  // unsent, of all nodes
	clear      bool   // added output is not yet encrypted, see tlswrite.go
	unread     bool   // no more requests are begun until the peer has received the output in the kernel, see unread.go
	since      uint32 // tick at which output became pending
	check      uint32 // tick at which progress is judged
	mark       int64  // bytes plus Conn.unsent at the last judgement, plus the output added since
}

// outNode is a piece of pending output: a copy in a pooled buffer, or an owned buffer. Its memory is charged until its last
// byte is sent.
type outNode struct {
	next     *outNode
	rest     []byte // unsent part
	clear    bool   // the output is not encrypted yet
	buf      *buffer
	releaser Releaser
	shared   *bodyUse // the charge of the memory, if buf is nil
}

func (q *outQueue) push(n *outNode) {
	if q.tail == nil {
		q.head = n
	} else {
		q.tail.next = n
	}
	q.tail = n
	q.bytes += int64(len(n.rest))
}

// pop drops the first node and releases its memory.
func (q *outQueue) pop(e *Engine) {
	n := q.head
	q.head = n.next
	if q.head == nil {
		q.tail = nil
	}
	e.buffers.put(n.buf)
	if n.releaser != nil {
		n.releaser.Release()
	}
	if n.shared != nil {
		e.shared.release(n.shared, e.cfg.Budget.Bound())
	}
}

// WriteOwned sends b after the current contents of Out, without copying. The engine calls r.Release when b has been sent or the
// connection is closed; until then b must not change. r may be nil. While b is pending, its capacity is charged to the budget.
func (d *Driver) WriteOwned(b []byte, r Releaser) {
	d.owned = append(d.owned, owned{after: len(d.Out), b: b, releaser: r})
}

// Gathered returns the number of bytes of answers that this call has made so far: Out and the buffers given to WriteOwned.
func (d *Driver) Gathered() int {
	n := len(d.Out)
	for i := range d.owned {
		n += len(d.owned[i].b)
	}
	return n
}

// send writes Out and the owned buffers of this call. Output that the socket does not accept becomes pending. send never
// blocks.
func (d *Driver) send(c *Conn) {
	if t := c.secure(); t != nil {
		d.sendTLS(c, t)
		return
	}
	if len(d.Out) == 0 && len(d.owned) == 0 {
		return
	}
	if c.flags&flagCloseNow != 0 {
		d.dropOutput()
		return
	}
	p := c.protocol()
	if c.out != nil {
		if p != nil {
			d.Out = d.Out[:len(d.Out)-p.Unsent(len(d.Out))]
		}
		d.pend(c, 0)
		return
	}
	var n int
	var errno syscall.Errno
	total := len(d.Out)
	if len(d.owned) == 0 {
		c.willSend(total)
		n, errno = send(c.fd, d.Out)
		if p != nil {
			var done bool
			if n, errno, done = d.acceptSwitched(c, p, n, errno); done {
				return
			}
			total = len(d.Out)
		}
	} else {
		total = d.gatherOutput()
		c.willSend(total)
		n, errno = d.gatherer().send(c.fd)
	}
	switch {
	case n == total && errno == 0:
		d.dropOutput()
	case errno == 0 || errno == unix.EAGAIN:
		d.pend(c, n)
		if errno == 0 {
			// There is more output than gather has room for, or than the socket accepted. epoll reports that the socket accepts
			// more only if a call has found it full.
			d.drain(c)
		}
	default:
		c.flags |= flagCloseNow
		d.dropOutput()
	}
}

func (d *Driver) gatherer() *gather {
	if d.gather == nil {
		d.gather = new(gather)
	}
	return d.gather
}

// gatherOutput collects Out and the owned buffers in order and returns their total length. Output for which the list has no room
// counts as unsent.
func (d *Driver) gatherOutput() (total int) {
	room := true
	add := func(b []byte) {
		total += len(b)
		if room && len(b) > 0 {
			room = d.gatherer().add(b)
		}
	}
	start := 0
	for i := range d.owned {
		add(d.Out[start:d.owned[i].after])
		add(d.owned[i].b)
		start = d.owned[i].after
	}
	add(d.Out[start:])
	return total
}

func (d *Driver) newOutQueue(c *Conn) *outQueue {
	now := tickAt(d.Now())
	d.engine.shared.n.Add(1)
	return &outQueue{since: now, check: now + d.engine.graceTicks, mark: c.unsent(), clear: c.secure() != nil}
}

// pend queues the output of this call except its first sent bytes.
func (d *Driver) pend(c *Conn, sent int) {
	e := d.engine
	if c.out == nil {
		c.out = d.newOutQueue(c)
		c.Account().BeginResponse(int64(d.Gathered() - sent)) // before it is charged
	}
	q := c.out
	before := q.bytes
	start := 0
	for i := range d.owned {
		o := &d.owned[i]
		sent = q.pushCopy(c, d.Out[start:o.after], sent)
		start = o.after
		if sent >= len(o.b) {
			sent -= len(o.b)
			o.release()
			continue
		}
		q.push(&outNode{rest: o.b[sent+o.sealed:], clear: q.clear, releaser: o.releaser, shared: e.shared.chargeUse(c.Account(), o.b, e.cfg.Budget.Bound())})
		sent = 0
	}
	q.pushCopy(c, d.Out[start:], sent)
	d.owned = clearOwned(d.owned)
	d.dropOutput()
	q.mark += q.bytes - before
	if q.bytes == 0 && !q.unread {
		c.sentAll(e)
		return
	}
	c.SetWorking(false)
	c.Progress(0, q.bytes)
	c.wantOut()
}

// pushCopy queues a copy of b without its first sent bytes. If sent exceeds the length of b, it returns the difference.
func (q *outQueue) pushCopy(c *Conn, b []byte, sent int) int {
	if sent >= len(b) {
		return sent - len(b)
	}
	b = b[sent:]
	if q.tail != nil && q.tail.buf != nil && q.tail.clear == q.clear {
		// Fill the last buffer before another one is allocated.
		n := q.tail.fill(b)
		q.bytes += int64(n)
		b = b[n:]
	}
	for len(b) > 0 {
		n := min(len(b), classSizes[len(classSizes)-1])
		buf := c.loop.e.buffers.copyOf(c.Account(), memory.Output, b[:n])
		q.push(&outNode{rest: buf.b, clear: q.clear, buf: buf})
		b = b[n:]
	}
	return 0
}

// fill appends as much of b to the buffer of o as there is room for, and returns the number of bytes. rest always ends where the
// buffer ends.
func (o *outNode) fill(b []byte) int {
	buf := o.buf
	n := min(len(b), cap(buf.b)-len(buf.b))
	buf.b = append(buf.b, b[:n]...)
	o.rest = buf.b[len(buf.b)-len(o.rest)-n:]
	return n
}

// drain writes pending output until the socket accepts no more. It reports whether all of it is sent; on an error the
// connection is marked for closing.
func (d *Driver) drain(c *Conn) bool {
	q, before := c.out, c.out.bytes
	defer func() {
		if taken := before - q.bytes; taken > 0 {
			c.Progress(taken, q.bytes)
		}
	}()
	for q.head != nil {
		if q.head.clear && !d.sealHead(c, c.secure(), q) {
			c.flags |= flagCloseNow
			return false
		}
		g := d.gatherer()
		for n := q.head; n != nil && !n.clear && g.add(n.rest); n = n.next {
		}
		n, errno := g.send(c.fd)
		if errno != 0 {
			if errno != unix.EAGAIN {
				c.flags |= flagCloseNow
			}
			return false
		}
		q.bytes -= int64(n)
		d.taking.moved += int64(n)
		for q.head != nil && n >= len(q.head.rest) {
			n -= len(q.head.rest)
			q.pop(d.engine)
		}
		if n > 0 {
			q.head.rest = q.head.rest[n:]
		}
	}
	if q.unread && !c.takenUp() {
		return false
	}
	if now := tickAt(d.Now()); c.deadline != 0 && now > q.since {
		// The time in which the peer read the output does not count against its deadline.
		c.deadline += now - q.since
	}
	c.sentAll(d.engine)
	return true
}

// sentAll ends the pending output of c.
func (c *Conn) sentAll(e *Engine) {
	c.out = nil
	e.shared.n.Add(-1)
	if a := c.acct.Load(); a != nil {
		a.EndResponse()
	}
}

// pending returns the memory, in bytes, of output that peers have not received.
func (e *Engine) pending() int64 { return e.cfg.Budget.HeldFor(memory.Output) }

// dropPending drops all pending output.
func (c *Conn) dropPending(e *Engine) {
	if c.out == nil {
		return
	}
	if a := c.acct.Load(); a != nil {
		a.AbandonResponse()
	}
	for c.out.head != nil {
		c.out.pop(e)
	}
	c.sentAll(e)
}

// maxKeptOut is the capacity in bytes up to which a driver keeps its output buffer, so that the memory of one large answer is
// released.
const maxKeptOut = 256 << 10

// dropOutput empties Out and releases the owned buffers.
func (d *Driver) dropOutput() {
	if len(d.owned) > 0 {
		for i := range d.owned {
			d.owned[i].release()
		}
		d.owned = clearOwned(d.owned)
	}
	invariants.EndLoan(d.Out)
	if cap(d.Out) > maxKeptOut {
		d.Out = nil
	}
	d.Out = d.Out[:0]
}

func clearOwned(o []owned) []owned {
	clear(o)
	return o[:0]
}

// wantOut makes epoll report when the socket accepts output again.
func (c *Conn) wantOut() {
	if c.flags&flagWantOut == 0 {
		c.flags |= flagWantOut
		c.lookAgain()
	}
}
