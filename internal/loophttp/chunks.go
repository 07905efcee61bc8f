//go:build linux

package loophttp

import (
	"cmp"
	"errors"
	"io"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// A chunked body is read with as few copies and system calls as its chunks allow. Data of a large chunk is received directly
// into the reader's memory. The framing between chunks, and small chunks, pass through a buffer, in pieces that surely belong to
// the body:
//
//	8000\r\n│32,768 bytes of data│\r\n8000\r│\n│32,768 bytes of data│\r\n0\r\n\r│\n
//	raw     │p                   │raw       │raw│p                  │raw          │raw

const (
	// streamBuffer is the maximum number of encoded bytes that are read into raw at once.
	streamBuffer = 8 << 10

	// directRead is the minimum amount of data of one chunk, in bytes, that justifies a read of its own.
	directRead = 4 << 10
)

// nextChunked is next for a chunked body. It fills p with the received data, as net/http does: a handler that stores each piece
// it reads then has few pieces.
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
			return filled, nil // the rest of p, or of the loop, does not justify another read
		}
		n, came, err := b.receiveChunked(p[filled:], filled > 0)
		filled += n
		if err != nil || !came {
			return filled, err
		}
	}
}

// decode takes data from the received part of the encoded body, until all of it is decoded or p is full.
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

// receiveChunked receives more of the body. Data of large chunks, and of small chunks that have arrived, is stored directly in
// p: n bytes. All other bytes are stored in raw. With here it does not wait and takes only bytes that have arrived, possibly
// none.
func (b *bodyStream) receiveChunked(p []byte, here bool) (n int, came bool, err error) {
	receive := b.receive
	if here {
		receive = b.receiveHere
	}
	framing, data := b.decoder.Coming()
	data = min(data, int64(len(p)))
	if data >= directRead && framing == 0 {
		n, err = receive(p[:data])
		_, _, _ = b.decoder.Decode(p[:n], p[:n]) // data is not changed by decoding
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

// decodeHere decodes the arrived bytes up to the end of the body and returns n bytes of data. It inspects the bytes before it
// reads them, because only the decoder can determine which of them belong to the body. That costs less than one system call
// per chunk.
func (b *bodyStream) decodeHere(p []byte) (n int, came bool, err error) {
	if !b.mayReceive() || !b.x.claim() {
		return 0, false, nil
	}
	defer b.x.unclaim()
	c, raw := b.x.Conn, b.raw[:cap(b.raw)]
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

// mayReceive reports whether a read that does not wait is allowed.
func (b *bodyStream) mayReceive() bool {
	return !b.noWait && b.asked && !b.stopped && !b.x.readBy().Passed()
}

// receiveHere is receive without waiting: it returns 0 bytes if none have arrived.
func (b *bodyStream) receiveHere(p []byte) (int, error) {
	x := b.x
	if !b.mayReceive() || !x.claim() {
		return 0, nil // received bytes are decoded first
	}
	defer x.unclaim()
	n, err := x.Conn.ReadHere(p)
	b.pace.Came(int64(n))
	switch {
	case err == nil || errors.Is(err, engine.ErrNoRoom): // the next receive returns the error again
		return n, nil
	default:
		return n, x.handler.server.BodyCut(err)
	}
}
