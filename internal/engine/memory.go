//go:build linux

package engine

import (
	"slices"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A call of the handler that lasts, such as one that sends a stream, is to hold no
// more memory than it needs: it gives the large buffers of its driver back, the one its
// input was read into by MoveInput, that of its output by Flush.

// memory is what a driver knows of the buffers of its present call.
type memory struct {
	readBuf []byte  // for receive; nil until it is needed, and after MoveInput
	in      []byte  // the input of this call of Data, without the first moved bytes
	inBuf   *buffer // what in lies in, nil if that is readBuf
	moved   int     // how much of the input MoveInput has cut off
	outBuf  *buffer // what Out lies in, nil if that is not of the pool
}

// smallInput is the size in bytes up to which a buffer is not worth replacing by a smaller one.
const smallInput = 4 << 10

// needReadBuf makes sure that there is a read buffer.
func (d *Driver) needReadBuf() {
	if d.readBuf == nil {
		d.readBuf = d.engine.takeReadBuf()
	}
}

// MoveInput keeps of this call's input only what begins at byte from, in a buffer
// of its size, and returns it; the handler must not use any earlier view of the input
// again. What Data returns still counts from the beginning. It is for calls that may
// last: the buffer that they were read into serves others meanwhile.
func (d *Driver) MoveInput(from int) []byte {
	rest := d.in[from-d.moved:]
	if d.inBuf == nil || cap(d.inBuf.b) > smallInput {
		old := d.inBuf
		d.inBuf, d.in, d.moved = nil, nil, from
		if len(rest) > 0 {
			d.inBuf = d.engine.buffers.copyOf(admission.Input, rest)
			d.in = d.inBuf.b
		}
		rest = d.in
		d.engine.buffers.put(old)
	}
	if d.readBuf != nil {
		d.engine.putReadBuf(d.readBuf)
		d.readBuf = nil
	}
	return rest
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
}
