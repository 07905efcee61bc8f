package compress

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/dunlinhttp/dunlin/middleware"
)

const (
	// window is the window size of a compressor in bytes. It determines the memory that the compressor
	// and the client's decoder need. RFC 9659 permits 8 MB.
	window = 1 << 20
	// streamWindow is the window size for streams, in bytes. It is smaller because many streams may be
	// open at the same time.
	streamWindow = 128 << 10
	// maxWindow is the maximum window size that a request body may use, in bytes. RFC 9659
	// requires every decoder to support it.
	maxWindow = 8 << 20
)

// Zstd returns the coding zstd (RFC 8878, RFC 9659) with a level from 1 (fastest) to 22 (smallest).
// The encoder maps these levels to four. Zstd panics for other levels.
func Zstd(level int) *middleware.Coding {
	if level < 1 || level > 22 {
		panic(fmt.Sprintf("compress: Zstd(%d): the level must be from 1 to 22", level))
	}
	options := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false),
	}
	whole, err := zstd.NewWriter(nil, append(options, zstd.WithWindowSize(window))...)
	if err != nil {
		panic("compress: Zstd: " + err.Error())
	}
	options = append(options, zstd.WithWindowSize(streamWindow), zstd.WithEncoderConcurrency(1))
	streams := &sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, options...)
		if err != nil {
			panic("compress: zstd: " + err.Error()) // cannot happen: the same options were valid before
		}
		return e
	}}
	return &middleware.Coding{
		Name:   "zstd",
		Append: func(dst, body []byte) []byte { return whole.EncodeAll(body, dst) },
		Begin:  func(w io.Writer) middleware.StreamCoder { return &zstdStream{pool: streams, w: w} },
		Open: func(src io.Reader) (io.Reader, error) {
			d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return nil, err
			}
			return d.IOReadCloser(), nil
		},
	}
}

// A zstdStream compresses a stream. Each piece consists of one or more independent frames (RFC 8878
// section 3).
type zstdStream struct {
	pool  *sync.Pool // of *zstd.Encoder
	w     io.Writer
	e     *zstd.Encoder // not nil within a piece
	begun bool
}

func (s *zstdStream) Write(p []byte) (int, error) {
	if s.e == nil {
		s.e = s.pool.Get().(*zstd.Encoder)
		s.e.Reset(s.w)
		s.begun = true
	}
	return s.e.Write(p)
}

func (s *zstdStream) Flush() error {
	if s.e == nil {
		return nil
	}
	err := s.e.Close()
	s.e.Reset(nil)
	s.pool.Put(s.e)
	s.e = nil
	return err
}

const (
	magic = 0xFD2FB528
	// plainFrame is the descriptor of a frame with a size of four bytes and a single segment.
	plainFrame = 2<<6 | 1<<5
	// maxPlain is the maximum size of an uncompressed frame, in bytes. The format limits a block to 128 KB.
	maxPlain = 64 << 10
)

// Plain writes p uncompressed, as frames that each have one raw block.
func (s *zstdStream) Plain(p []byte) error {
	if err := s.Flush(); err != nil {
		return err
	}
	for {
		s.begun = true
		n := min(len(p), maxPlain)
		var head [12]byte
		binary.LittleEndian.PutUint32(head[:], magic)
		head[4] = plainFrame
		binary.LittleEndian.PutUint32(head[5:], uint32(n))
		block := uint32(n)<<3 | 1 // a raw block, the last of its frame
		head[9], head[10], head[11] = byte(block), byte(block>>8), byte(block>>16)
		if _, err := s.w.Write(head[:]); err != nil {
			return err
		}
		if _, err := s.w.Write(p[:n]); err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
	}
}

func (s *zstdStream) Close() error {
	if !s.begun {
		return s.Plain(nil) // zero bytes are not valid zstd
	}
	return s.Flush()
}
