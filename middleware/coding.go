package middleware

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"
)

// A Coding is a content coding (RFC 9110 section 8.4.1), for [Compress] and [Decompress]. Functions
// for unsupported operations are nil. The functions must be safe for concurrent use.
type Coding struct {
	// Name is the name in Content-Encoding, in lower case, such as gzip.
	Name string

	// Append appends the encoded body to dst.
	Append func(dst, body []byte) []byte

	// Begin returns an encoder that writes a stream to w.
	Begin func(w io.Writer) StreamCoder

	// Open returns a reader that decodes src. If the reader is an io.Closer, the middleware closes it
	// after use.
	Open func(src io.Reader) (io.Reader, error)
}

// A StreamCoder encodes a stream. The data written before Flush, Plain or Close is a piece. A
// StreamCoder may hold a compressor, or other large memory, only within a piece, because a stream may
// last as long as its client stays connected. It is used by one goroutine at a time.
type StreamCoder interface {
	// Write encodes p as a part of the current piece.
	Write(p []byte) (int, error)
	// Flush ends the piece. The client can then decode all of it.
	Flush() error
	// Plain writes p, of any length, as an uncompressed piece, without a compressor.
	Plain(p []byte) error
	// Close ends the current piece, if any, and the body. It is called once.
	Close() error
}

// Gzip returns the coding gzip (RFC 1952). level must be a valid level of package gzip.
func Gzip(level int) *Coding {
	z := &zipper{level: level}
	return &Coding{
		Name:   "gzip",
		Append: z.append,
		Begin:  func(w io.Writer) StreamCoder { return &gzipStream{pool: &z.streams, level: level, w: w} },
		Open:   func(src io.Reader) (io.Reader, error) { return gzip.NewReader(src) },
	}
}

// Deflate returns the coding deflate, in zlib's format (RFC 1950), for request bodies. It does not
// encode responses, since clients disagree about the format.
func Deflate() *Coding {
	return &Coding{Name: "deflate", Open: func(src io.Reader) (io.Reader, error) {
		buffered := bufio.NewReader(src)
		z, err := zlib.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		return &zlibReader{z, buffered}, nil
	}}
}

// A zlibReader fails if data follows the end of the zlib stream, which package zlib leaves unread.
type zlibReader struct {
	io.ReadCloser
	src *bufio.Reader
}

func (z *zlibReader) Read(p []byte) (int, error) {
	n, err := z.ReadCloser.Read(p)
	if err == io.EOF {
		if _, more := z.src.ReadByte(); more == nil {
			err = errors.New("zlib: data after the end of the stream")
		} else if more != io.EOF {
			err = more
		}
	}
	return n, err
}

// A zipper compresses with pooled writers, because a writer needs much memory.
type zipper struct {
	level   int
	whole   sync.Pool // of *gzip.Writer
	streams sync.Pool // of *flate.Writer
}

func (z *zipper) append(dst, body []byte) []byte {
	buf := bytes.NewBuffer(dst)
	gz, ok := z.whole.Get().(*gzip.Writer)
	if !ok {
		gz, _ = gzip.NewWriterLevel(buf, z.level) // the level is valid
	}
	gz.Reset(buf)
	_, _ = gz.Write(body) // never fails
	_ = gz.Close()
	z.whole.Put(gz)
	return buf.Bytes()
}

// A gzipStream is a stream in gzip. Each piece is compressed independently, so that the compressor
// can be released after the piece. Deflate blocks (RFC 1951) of several compressors can follow each
// other, since a flush ends at a byte boundary.
type gzipStream struct {
	pool  *sync.Pool // of *flate.Writer
	level int
	w     io.Writer
	fw    *flate.Writer // within a piece
	crc   uint32
	size  uint32
	begun bool
}

// gzipHeader states the method deflate, an unknown operating system, and no name and time.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

func (s *gzipStream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	_, err := io.WriteString(s.w, gzipHeader)
	return err
}

func (s *gzipStream) count(p []byte) {
	s.crc = crc32.Update(s.crc, crc32.IEEETable, p)
	s.size += uint32(len(p)) // modulo 2^32, as in the format
}

func (s *gzipStream) Write(p []byte) (int, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	if s.fw == nil {
		fw, ok := s.pool.Get().(*flate.Writer)
		if !ok {
			fw, _ = flate.NewWriter(s.w, s.level) // the level is valid
		}
		fw.Reset(s.w)
		s.fw = fw
	}
	s.count(p)
	return s.fw.Write(p)
}

// leave returns the compressor to the pool.
func (s *gzipStream) leave() {
	s.fw.Reset(io.Discard) // a pooled compressor must not keep s.w alive
	s.pool.Put(s.fw)
	s.fw = nil
}

func (s *gzipStream) Flush() error {
	if s.fw == nil {
		return nil
	}
	err := s.fw.Flush()
	s.leave()
	return err
}

// Plain writes p as stored blocks (RFC 1951 section 3.2.4), and then an empty block as a flush does, so
// that decoders pass on all data.
func (s *gzipStream) Plain(p []byte) error {
	if err := s.Flush(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	s.count(p)
	for len(p) > 0 {
		n := min(len(p), 1<<16-1)
		if err := s.stored(0, n); err != nil {
			return err
		}
		if _, err := s.w.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return s.stored(0, 0)
}

// stored writes the header of a stored block of n bytes: final, the length and its complement.
func (s *gzipStream) stored(final byte, n int) error {
	head := [5]byte{final}
	binary.LittleEndian.PutUint16(head[1:], uint16(n))
	binary.LittleEndian.PutUint16(head[3:], ^uint16(n))
	_, err := s.w.Write(head[:])
	return err
}

func (s *gzipStream) Close() error {
	err := s.begin()
	if s.fw != nil {
		if err == nil {
			err = s.fw.Close()
		}
		s.leave()
	} else if err == nil {
		err = s.stored(1, 0)
	}
	if err != nil {
		return err
	}
	var tail [8]byte
	binary.LittleEndian.PutUint32(tail[:], s.crc)
	binary.LittleEndian.PutUint32(tail[4:], s.size)
	_, err = s.w.Write(tail[:])
	return err
}
