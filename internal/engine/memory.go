//go:build linux

package engine

import (
	"slices"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// A call of the handler that lasts, such as one that sends a stream, is to hold no
// more memory than it needs: it gives the large buffers of its driver back, the one its
// input was read into by MoveInput, that of its output by Flush.

// A loop reads into one large buffer, in which nothing stays: what was read moves to
// memory of its size, which is its driver's. So a driver that is taken over keeps hardly
// more than the request whose action it waits for, and its loop can go on reading.

// memory is what a driver knows of the buffers of its present call.
type memory struct {
	own    *buffer // of ownInput bytes, for what is read; nil until it is needed, and after MoveInput
	in     []byte  // the input of this call of Data, without the first moved bytes
	inBuf  *buffer // what in lies in, nil if that is own
	moved  int     // how much of the input MoveInput has cut off
	outBuf *buffer // what Out lies in, nil if that is not of the pool
	second []byte  // another Out, see returnOut
	lends  int     // the capacity of input and Out when the call began, less what was moved
	lent   int64   // bytes of the budget for them, since the loop was lost
}

const (
	// ownInput is the size in bytes of the buffer that a driver keeps for its input, a class
	// of the pool. More is copied to a pooled buffer, and what is larger than mostCopied
	// takes the one it was read into along.
	ownInput   = 4 << 10
	mostCopied = 16 << 10

	// mostSpread is how many times larger it may be.
	mostSpread = 4

	// smallInput is the size up to which a buffer is not worth replacing by a smaller one.
	smallInput = 4 << 10
)

// readBuf returns the memory that the loop reads into, of Config.ReadBuffer bytes.
func (l *loop) readBuf() []byte {
	if l.raw == nil {
		l.raw = l.e.buffers.forReading()
	}
	return l.raw.b[:cap(l.raw.b)]
}

// crowdedRead is how many bytes are read at once of a connection while much of the budget is held: of bodies that come to
// wait for room the rest waits in the system.
const crowdedRead = tlsmem.MaxRecord

// modest returns the part of the loop's read buffer that is to be filled behind what is kept there.
func (l *loop) modest(in []byte, kept int) []byte {
	if len(in)-kept > crowdedRead && l.e.cfg.Holders.Crowding() {
		return in[kept : kept+crowdedRead]
	}
	return in[kept:]
}

// takeInput moves the first n bytes of the loop's read buffer to memory of d's.
func (d *Driver) takeInput(n int) []byte {
	l, pool := d.loop, &d.engine.buffers
	if n <= ownInput {
		if d.own == nil {
			d.own = pool.scratch(ownInput)
		}
		return append(d.own.b[:0], l.raw.b[:n]...)
	}
	if n > mostCopied && cap(l.raw.b) <= mostSpread*n {
		d.inBuf, l.raw = l.raw, nil
		d.inBuf.b = d.inBuf.b[:n]
		return d.inBuf.b
	}
	d.inBuf = pool.scratch(n)
	d.inBuf.b = append(d.inBuf.b, l.raw.b[:n]...)
	return d.inBuf.b
}

// mostOut is the capacity in bytes up to which a driver keeps an Out in which there is
// nothing, between Enter and Leave.
const mostOut = 16 << 10

// returnOut is called by Enter when Out is large. It leaves Out to the loop unless there is
// something in it.
func (d *Driver) returnOut() {
	if len(d.Out) == 0 {
		d.loop.out, d.Out, d.second = d.Out, d.second, nil
	}
	d.lends = d.unheld()
}

// takeOut undoes returnOut, perhaps of another driver's. What was appended meanwhile moves.
func (d *Driver) takeOut() {
	l := d.loop
	small := d.Out
	d.Out, l.out = append(l.out[:0], small...), nil
	if d.second = small[:0]; cap(small) > mostOut {
		d.second = nil
	}
}

// lend charges the budget for what d's call holds now that it has lost its loop; n is the
// capacity of its buffers. It is called by the driver, or with takeMu held by who takes the
// loop from it.
func (d *Driver) lend(n int) {
	d.lent = int64(n)
	d.engine.cfg.Budget.Force(admission.Queued, d.lent)
	d.engine.cfg.Holders.Balance()
}

// relend corrects what lend has charged when the buffers of a call that has lost its loop have
// become others.
func (d *Driver) relend() {
	if d.lent == 0 {
		return
	}
	n := int64(d.unheld())
	d.engine.cfg.Budget.Force(admission.Queued, n-d.lent)
	d.lent = n
}

// unheld returns the capacity of the call's buffers that the budget does not count otherwise.
func (d *Driver) unheld() int {
	n := cap(d.Out) + cap(d.second)
	if d.inBuf != nil {
		return n + int(d.inBuf.unheld())
	}
	return n + int(d.own.unheld())
}

// releaseLent ends lend.
func (d *Driver) releaseLent() {
	if d.lent != 0 {
		d.engine.cfg.Budget.Release(admission.Queued, d.lent)
		d.lent = 0
	}
}

// releaseOwn gives the driver's own buffer back, which nobody views any more.
func (d *Driver) releaseOwn() {
	d.engine.buffers.put(d.own)
	d.own = nil
}

// MoveInput keeps of this call's input only what begins at byte from, in a buffer
// of its size, and returns it; the handler must not use any earlier view of the input
// again. What Data returns still counts from the beginning. It is for calls that may
// last: the buffer that they were read into serves others meanwhile.
func (d *Driver) MoveInput(from int) []byte {
	rest := d.in[from-d.moved:]
	if d.inBuf != nil && cap(d.inBuf.b) <= smallInput {
		return rest
	}
	old := d.inBuf
	if old == nil {
		old, d.own = d.own, nil
	}
	size := old.unheld()
	d.inBuf, d.in, d.moved = nil, nil, from
	if len(rest) > 0 {
		copyOf := d.engine.buffers.copyOf
		if len(rest) > mostCopied {
			copyOf = d.engine.buffers.exactCopyOf // the next class is four times as large
		}
		d.inBuf = copyOf(d.conn.Account(), admission.Input, rest)
		d.in = d.inBuf.b
	}
	rest = d.in
	d.engine.buffers.put(old)
	d.lendsLess(size)
	return rest
}

// lendsLess corrects what lend has charged, or will charge, when the call no longer has n bytes
// of its buffers. The loop may be lost already without d knowing it.
func (d *Driver) lendsLess(n int64) {
	if !d.detached {
		l := d.loop
		l.takeMu.Lock()
		defer l.takeMu.Unlock()
		if l.epoch.Load() == d.epoch {
			d.lends -= int(n)
			return
		}
	}
	if d.lent != 0 {
		d.lent -= n
		d.engine.cfg.Budget.Release(admission.Queued, n)
	}
}

// Reserve makes room for n more bytes in Out. Once detached, the driver takes it from
// the pool that Flush gives it back to, so that a stream holds no output buffer
// between its pieces.
func (d *Driver) Reserve(n int) {
	switch {
	case cap(d.Out)-len(d.Out) >= n:
	case !d.detached:
		d.Out = slices.Grow(d.Out, n)
	default:
		larger := d.engine.buffers.scratch(len(d.Out) + n)
		larger.b = append(larger.b, d.Out...)
		d.Out = d.Out[:0]
		d.releaseOut()
		d.Out, d.outBuf = larger.b, larger
	}
}

// releaseOut gives the memory of Out back, which is empty.
func (d *Driver) releaseOut() {
	if cap(d.Out) == 0 {
		return
	}
	buf := d.outBuf
	if buf == nil {
		buf = new(buffer)
	}
	buf.b = d.Out
	d.engine.buffers.put(buf)
	d.Out, d.outBuf = nil, nil
	d.relend()
}
