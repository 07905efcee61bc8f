//go:build linux

package loophttp

import (
	"cmp"
	"errors"
	"io"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// A chunked body is read with as few copies and system calls as its chunks allow. The data of a large chunk goes from the
// connection to the reader's memory. The framing between chunks, and small chunks, go through a buffer, in pieces that
// surely belong to the body:
//
//	8000\r\n│32,768 bytes of data│\r\n8000\r│\n│32,768 bytes of data│\r\n0\r\n\r│\n
//	raw     │p                   │raw       │raw│p                  │raw          │raw

const (
	// streamBuffer is how much encoded body is read at once, in bytes.
	streamBuffer = 8 << 10

	// directRead is how much data of one chunk is worth a read of its own, in bytes.
	directRead = 4 << 10
)

// nextChunked is next for a chunked body. It fills p with what has come, as net/http does: a handler that stores each
// piece that it reads has as few of them.
func (b *bodyStream) nextChunked(p []byte) (filled int, err error) {
	for {
		n, err := b.decode(p[filled:])
		filled += n
		switch {
		case err != nil:
			return filled, b.malformed(err)
		case filled == len(p):
			return filled, nil
		case b.decoder.Done():
			return filled, io.EOF
		case filled > 0 && (len(p)-filled < directRead || b.x.d.Inline()):
			return filled, nil // what is left of p, or of the loop, is not worth another read
		}
		n, came, err := b.receiveChunked(p[filled:], filled > 0)
		filled += n
		if err != nil || !came {
			return filled, err
		}
	}
}

// decode takes data from what has come of the encoded body, until that or the room in p is used up.
func (b *bodyStream) decode(p []byte) (filled int, err error) {
	for {
		src, early := b.raw, false
		if len(b.rest) > 0 {
			src, early = b.rest, true
		}
		n, used, err := b.decoder.Decode(p[filled:], src)
		filled += n
		if early {
			b.rest = b.rest[used:]
			b.taken += used
		} else {
			b.raw = b.raw[:copy(b.raw, b.raw[used:])]
		}
		if err != nil || used == 0 || filled == len(p) || b.decoder.Done() {
			return filled, err
		}
	}
}

// receiveChunked receives more of the body: data of large chunks, and of small ones that have come, directly to p, of which it fills n
// bytes; all else to raw. With here it takes what has come, which may be nothing, instead of waiting for more.
func (b *bodyStream) receiveChunked(p []byte, here bool) (n int, came bool, err error) {
	receive := b.receive
	if here {
		receive = b.receiveHere
	}
	framing, data := b.decoder.Coming()
	data = min(data, int64(len(p)))
	if data >= directRead && framing == 0 {
		n, err = receive(p[:data])
		_, _, _ = b.decoder.Decode(p[:n], p[:n]) // it is data: it stays where it is
		return n, n > 0, err
	}
	if cap(b.raw) == 0 {
		b.raw = make([]byte, 0, streamBuffer)
	}
	wants := min(b.decoder.Least(), int64(cap(b.raw)))
	switch {
	case data >= directRead:
		wants = framing
	case wants > 1 && wants < directRead && b.decoder.MeanChunk() < directRead: // 1: within trailers
		if n, came, err = b.decodeHere(p); came || err != nil {
			return n, came, err
		}
	}
	n, err = receive(b.raw[:wants])
	b.raw = b.raw[:n]
	return 0, n > 0, err
}

// decodeHere decodes what has come, up to the body's end, and n bytes of data. It looks at the bytes before it reads them,
// since only the decoder can tell which belong to the body: that is less than a system call for each chunk.
func (b *bodyStream) decodeHere(p []byte) (n int, came bool, err error) {
	if !b.mayReceive() || !b.x.claim() {
		return 0, false, nil
	}
	defer b.x.unclaim()
	c, raw := b.x.c, b.raw[:cap(b.raw)]
	if raw = raw[:c.Peek(raw)]; len(raw) > 0 {
		b.moveInput()
	}
	used := 0
	for used < len(raw) && n < len(p) && !b.decoder.Done() {
		m, taken, e := b.decoder.Decode(p[n:], raw[used:])
		n += m
		used += taken
		if err = e; e != nil || taken == 0 {
			break
		}
	}
	for left := raw[:used]; len(left) > 0; {
		m, e := c.ReadHere(left)
		if left = left[m:]; e != nil || m == 0 {
			return 0, false, b.cut(cmp.Or(e, io.ErrUnexpectedEOF))
		}
	}
	b.pace.Came(int64(used))
	if err != nil {
		err = b.malformed(err)
	}
	return n, used > 0, err
}

// mayReceive reports whether the connection may be read though nothing is waited for.
func (b *bodyStream) mayReceive() bool {
	return !b.noWait && b.asked && !b.stopped && !passed(b.x.readBy())
}

// receiveHere is receive that does not wait: it returns 0 bytes where nothing has come.
func (b *bodyStream) receiveHere(p []byte) (int, error) {
	x := b.x
	if !b.mayReceive() || !x.claim() {
		return 0, nil // what there is to read comes first
	}
	defer x.unclaim()
	n, err := x.c.ReadHere(p)
	b.pace.Came(int64(n))
	switch {
	case err == nil || errors.Is(err, engine.ErrNoRoom): // which the next receive returns, too
		return n, nil
	default:
		return n, x.handler.server.BodyCut(err)
	}
}
