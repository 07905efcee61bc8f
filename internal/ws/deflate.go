package ws

import (
	"compress/flate"
	"io"
	"runtime"
	"sync"
)

// tail is appended to a compressed message: the end that the sender has removed, and a last block, so that the decompressor
// reaches the end.
const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

// source reads a compressed message, followed by tail. It implements io.ByteReader, so that package flate needs no buffer.
type source struct {
	rest   []byte
	ending bool // rest is the tail
}

var tailBytes = []byte(tail)

func (s *source) more() bool {
	if len(s.rest) == 0 && !s.ending {
		s.rest, s.ending = tailBytes, true
	}
	return len(s.rest) > 0
}

func (s *source) Read(p []byte) (int, error) {
	if !s.more() {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *source) ReadByte() (byte, error) {
	if !s.more() {
		return 0, io.ErrUnexpectedEOF
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b, nil
}

// An inflater has a window of 32 KiB. Inflaters are pooled and are in use only during a call of Inflate.
type inflater struct {
	from source
	r    io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	f := new(inflater)
	f.r = flate.NewReader(&f.from)
	return f
}}

// firstInflated is the initial capacity of a decompressed message, in bytes.
const firstInflated = 512

// Inflate decompresses a message. limit is the maximum length of the result, in bytes. For a longer message the error has the
// code TooBig.
//
// Inflate calls grow when b is full. grow returns b with room for at least one more byte, and a capacity of at most limit. If
// grow returns nil, Inflate returns ErrStopped; the caller can refuse memory in this way before it is allocated. If Inflate
// returns an error, it also returns the last result of grow that was not nil.
func Inflate(message []byte, limit int, grow func(b []byte, limit int) []byte) ([]byte, error) {
	f := inflaters.Get().(*inflater)
	defer func() {
		f.from.rest = nil
		inflaters.Put(f)
	}()
	f.from = source{rest: message}
	_ = f.r.(flate.Resetter).Reset(&f.from, nil) // never fails
	var b []byte
	for {
		if len(b) == cap(b) {
			if len(b) >= limit {
				return b, inflateEnds(f, limit)
			}
			larger := grow(b, limit)
			if larger == nil {
				return b, ErrStopped
			}
			b = larger
		}
		n, err := f.r.Read(b[len(b):min(cap(b), limit)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF && len(f.from.rest) == 0 && f.from.ending:
			return b, nil
		case err != nil:
			return b, errDeflate // this is also the result for a truncated message
		case len(b) >= limit:
			return b, inflateEnds(f, limit)
		}
	}
}

// inflateEnds returns an error if a message is longer than the limit that was reached.
func inflateEnds(f *inflater, limit int) error {
	var one [1]byte
	for {
		n, err := f.r.Read(one[:])
		switch {
		case n > 0:
			return &Error{TooBig, "message is longer than allowed after decompression"}
		case err == io.EOF && len(f.from.rest) == 0 && f.from.ending:
			return nil
		case err != nil:
			return errDeflate
		}
	}
}

// ErrStopped is the error of Inflate if grow returned nil.
var ErrStopped error = &Error{TryAgainLater, "no memory for the message"}

// A deflater has about 800 KB of tables. At most as many exist as there are processors, so that the memory for compression is
// limited.
type deflater struct {
	w   *flate.Writer
	out []byte
}

func (d *deflater) Write(p []byte) (int, error) {
	d.out = append(d.out, p...)
	return len(p), nil
}

var (
	deflaters = sync.Pool{New: func() any {
		d := new(deflater)
		d.w, _ = flate.NewWriter(d, flate.BestSpeed) // the level is valid
		return d
	}}
	deflating = make(chan struct{}, runtime.GOMAXPROCS(0))
)

// LeastDeflated is the minimum length of messages to clients that are compressed, in bytes.
const LeastDeflated = 128

// AppendDeflated appends the payload of a compressed message. The matches in it refer to at most 1<<window preceding bytes.
func AppendDeflated(b, message []byte, window uint8) []byte {
	deflating <- struct{}{}
	defer func() { <-deflating }()
	d := deflaters.Get().(*deflater)
	d.out = b
	piece := len(message)
	if window < MostWindow {
		piece = 1 << window // pieces are compressed separately, so that no match crosses their boundary
	}
	for {
		n := min(piece, len(message))
		d.w.Reset(d)
		_, _ = d.w.Write(message[:n]) // never fails, because it appends
		_ = d.w.Flush()
		if message = message[n:]; len(message) == 0 {
			break
		}
	}
	b = d.out[:len(d.out)-len("\x00\x00\xff\xff")]
	d.out = nil
	deflaters.Put(d)
	return b
}

// Grown returns b with a larger capacity. The capacity is first 512 bytes and then doubles each time, but is at most limit.
func Grown(b []byte, limit int) []byte {
	larger := make([]byte, len(b), NextCapacity(cap(b), limit))
	copy(larger, b)
	return larger
}

// NextCapacity returns the capacity of the result of Grown.
func NextCapacity(capacity, limit int) int { return min(max(2*capacity, firstInflated), limit) }

// DeflatedFrame returns the text message of a frame as a compressed frame, nil if that is not shorter.
func DeflatedFrame(frame []byte) []byte {
	payload := Payload(frame)
	if len(payload) < LeastDeflated {
		return nil
	}
	packed := AppendDeflated(nil, payload, MostWindow)
	if len(packed)+MaxHeader >= len(frame) {
		return nil
	}
	return append(AppendHeader(make([]byte, 0, len(packed)+MaxHeader), Text, true, true, len(packed)), packed...)
}
