//go:build linux

package engine

import (
	"slices"

	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// A long call of the handler, such as one that sends a stream, must hold no more memory than it needs. It releases the large
// buffers of its driver: the buffer of its input by MoveInput, that of its output by Flush.

// A loop reads into one large buffer, which is free again after each call: input moves to memory of its size, which belongs to
// the loop's driver. So a driver that is taken over keeps little more memory than that of its request, and its loop can continue
// to read.

// callBuffers are the buffers of a driver's current call.
type callBuffers struct {
	own          *buffer // of ownInput bytes, for input; nil until it is needed, and after MoveInput
	in           []byte  // the input of this call of Data, without the first moved bytes
	inBuf        *buffer // the buffer of in, nil if that is own
	moved        int     // the length of the input that MoveInput has cut off
	outBuf       *buffer // the buffer of Out, nil if that is not from the pool
	second       []byte  // another Out, see returnOut
	sizeAtBegin  int     // the capacity of the buffers of input and Out at the beginning of the call, minus the part that was moved
	bufferCharge int64   // the bytes charged for these buffers since the loop was lost
}

const (
	// ownInput is the size in bytes of the buffer that a driver keeps for its input, a class of the pool. Longer input is
	// copied to a pooled buffer. Input longer than maxCopied keeps the buffer that it was read into.
	ownInput  = 4 << 10
	maxCopied = 16 << 10

	// maxSpread is the maximum ratio between that buffer and its input.
	maxSpread = 4

	// smallInput is the size in bytes up to which a buffer is not replaced by a smaller one.
	smallInput = 4 << 10
)

// readBuf returns the read buffer of the loop, of Config.ReadBuffer bytes.
func (l *loop) readBuf() []byte {
	if l.raw == nil {
		l.raw = l.e.buffers.forReading()
	}
	return l.raw.b[:cap(l.raw.b)]
}

// crowdedRead is the maximum number of bytes that are read at once from a connection while much of the budget is used. If a body
// must wait for memory, its rest then stays in the kernel.
const crowdedRead = tlsmem.MaxRecord

// readSpace returns the part of the loop's read buffer to be filled after the kept input.
func (l *loop) readSpace(in []byte, kept int) []byte {
	if len(in)-kept > crowdedRead && l.e.cfg.Budget.Crowding() {
		return in[kept : kept+crowdedRead]
	}
	return in[kept:]
}

// takeInput moves the first n bytes of the loop's read buffer to memory of d.
func (d *Driver) takeInput(n int) []byte {
	l, pool := d.loop, &d.engine.buffers
	if n <= ownInput {
		if d.own == nil {
			d.own = pool.scratch(ownInput)
		}
		return append(d.own.b[:0], l.raw.b[:n]...)
	}
	if n > maxCopied && cap(l.raw.b) <= maxSpread*n {
		d.inBuf, l.raw = l.raw, nil
		d.inBuf.b = d.inBuf.b[:n]
		return d.inBuf.b
	}
	d.inBuf = pool.scratch(n)
	d.inBuf.b = append(d.inBuf.b, l.raw.b[:n]...)
	return d.inBuf.b
}

// maxOut is the capacity in bytes up to which a driver keeps an empty Out between Enter and Leave.
const maxOut = 16 << 10

// returnOut is called by Enter when Out is large. It leaves Out to the loop if Out is empty.
func (d *Driver) returnOut() {
	if len(d.Out) == 0 {
		d.loop.out, d.Out, d.second = d.Out, d.second, nil
	}
	d.sizeAtBegin = d.unheld()
}

// takeOut undoes returnOut, which another driver of the loop may have called. Output that was appended since is copied.
func (d *Driver) takeOut() {
	l := d.loop
	small := d.Out
	d.Out, l.out = append(l.out[:0], small...), nil
	if d.second = small[:0]; cap(small) > maxOut {
		d.second = nil
	}
}

// chargeBuffers charges the budget for the buffers of d's call after it has lost its loop; n is their capacity. It is called by
// the driver, or with takeMu held by the goroutine that takes over the loop.
func (d *Driver) chargeBuffers(n int) {
	d.bufferCharge = int64(n)
	d.engine.cfg.Budget.Force(memory.Input, d.bufferCharge)
}

// correctCharge corrects the charge of chargeBuffers when a call that has lost its loop has other buffers than before.
func (d *Driver) correctCharge() {
	if d.bufferCharge == 0 {
		return
	}
	n := int64(d.unheld())
	d.engine.cfg.Budget.Force(memory.Input, n-d.bufferCharge)
	d.bufferCharge = n
}

// unheld returns the capacity of the call's buffers that the budget does not count otherwise.
func (d *Driver) unheld() int {
	n := cap(d.Out) + cap(d.second)
	if d.inBuf != nil {
		return n + int(d.inBuf.unheld())
	}
	return n + int(d.own.unheld())
}

// releaseCharge undoes chargeBuffers.
func (d *Driver) releaseCharge() {
	if d.bufferCharge != 0 {
		d.engine.cfg.Budget.Force(memory.Input, -d.bufferCharge)
		d.bufferCharge = 0
	}
}

// releaseOwn releases the driver's own buffer. No view of it may be in use.
func (d *Driver) releaseOwn() {
	d.engine.buffers.put(d.own)
	d.own = nil
}

// MoveInput keeps only the part of this call's input that begins at byte from, in a buffer of its size, and returns it. The
// handler must not use earlier views of the input again. The result of Data still counts from the beginning of the input.
// MoveInput is for calls that may be long: others can use the large buffer meanwhile.
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
		if len(rest) > maxCopied {
			copyOf = d.engine.buffers.exactCopyOf // the next class is four times as large
		}
		d.inBuf = copyOf(d.conn.Account(), memory.Input, rest)
		d.in = d.inBuf.b
	}
	rest = d.in
	d.engine.buffers.put(old)
	d.reduceCharge(size)
	return rest
}

// reduceCharge corrects the accounting after the call has released n bytes of its buffers: it reduces the present charge of
// chargeBuffers, or the charge that a later takeover will make. The monitor may have taken over the loop without d knowing it.
func (d *Driver) reduceCharge(n int64) {
	if !d.detached {
		l := d.loop
		l.takeMu.Lock()
		defer l.takeMu.Unlock()
		if l.epoch.Load() == d.epoch {
			d.sizeAtBegin -= int(n)
			return
		}
	}
	if d.bufferCharge != 0 {
		d.bufferCharge -= n
		d.engine.cfg.Budget.Force(memory.Input, -n)
	}
}

// Reserve makes room for n more bytes in Out. For a detached driver the memory comes from the pool, and Flush returns it, so that
// a stream holds no output buffer between its pieces.
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

// releaseOut releases the memory of Out, which is empty.
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
	d.correctCharge()
}
