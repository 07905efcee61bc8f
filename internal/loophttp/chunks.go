//go:build linux

package loophttp

import (
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
		n, direct, err := b.receiveChunked(p[filled:], filled > 0)
		if direct {
			filled += n
		}
		if err != nil || n == 0 {
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

// receiveChunked receives more of the body: data of a large chunk directly to p, all else to raw. With here it takes what has
// come, which may be nothing, instead of waiting for more.
func (b *bodyStream) receiveChunked(p []byte, here bool) (n int, direct bool, err error) {
	receive := b.receive
	if here {
		receive = b.receiveHere
	}
	framing, data := b.decoder.Coming()
	data = min(data, int64(len(p)))
	if data >= directRead && framing == 0 {
		n, err = receive(p[:data])
		_, _, _ = b.decoder.Decode(p[:n], p[:n]) // it is data: it stays where it is
		return n, true, err
	}
	if cap(b.raw) == 0 {
		b.raw = make([]byte, 0, streamBuffer)
	}
	wants := min(b.decoder.Least(), int64(cap(b.raw)))
	switch {
	case data >= directRead:
		wants = framing
	case wants > 1 && wants < directRead && b.decoder.MeanChunk() < directRead: // 1: within trailers
		wants = max(wants, b.ahead())
	}
	n, err = receive(b.raw[:wants])
	b.raw = b.raw[:n]
	return n, false, err
}

// ahead returns how many of the bytes that have come, as many as raw has room for, belong to the body. They are looked at
// twice: that is less than a system call for each chunk.
func (b *bodyStream) ahead() int64 {
	if b.noWait || !b.x.claim() {
		return 0
	}
	defer b.x.unclaim()
	raw := b.raw[:cap(b.raw)]
	raw = raw[:b.x.c.Peek(raw)]
	ends, used := b.decoder.Twin(), 0
	for used < len(raw) && !ends.Done() {
		_, n, err := ends.Next(raw[used:])
		if used += n; err != nil {
			break // decode will come to it
		}
	}
	return int64(used)
}

// receiveHere is receive that does not wait: it returns 0 bytes where nothing has come.
func (b *bodyStream) receiveHere(p []byte) (int, error) {
	x := b.x
	if b.noWait || !b.asked || b.stopped || passed(x.readBy()) || !x.claim() {
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
