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
	// window bounds how far back a compressor looks, and so what it and its client's decoder hold, in bytes. RFC 9659 allows 8 MB.
	window = 1 << 20
	// streamWindow is that of streams, of which there are many at once.
	streamWindow = 128 << 10
	// mostWindow is what bodies of requests may ask for, which RFC 9659 says that everybody must take.
	mostWindow = 8 << 20
)

// Zstd returns the coding zstd (RFC 8878, RFC 9659) with a level from 1 (fast) to 22 (small), of which this encoder has four. It
// panics for another level.
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
			panic("compress: zstd: " + err.Error()) // the same options were right before
		}
		return e
	}}
	return &middleware.Coding{
		Name:   "zstd",
		Append: func(dst, body []byte) []byte { return whole.EncodeAll(body, dst) },
		Begin:  func(w io.Writer) middleware.StreamCoder { return &zstdStream{pool: streams, w: w} },
		Open: func(src io.Reader) (io.Reader, error) {
			d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
			if err != nil {
				return nil, err
			}
			return d.IOReadCloser(), nil
		},
	}
}

// A zstdStream is a stream in zstd: each piece is a frame, or some, which need nothing of those before (RFC 8878 section 3).
type zstdStream struct {
	pool  *sync.Pool // of *zstd.Encoder
	w     io.Writer
	e     *zstd.Encoder // within a piece
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
	// plainFrame is the descriptor of a frame that says its size in four bytes and is one segment.
	plainFrame = 2<<6 | 1<<5
	// mostPlain is the size of the largest frame that is written plain, in bytes. A block has 128 KB at most.
	mostPlain = 64 << 10
)

// Plain writes frames of one raw block each.
func (s *zstdStream) Plain(p []byte) error {
	if err := s.Flush(); err != nil {
		return err
	}
	for {
		s.begun = true
		n := min(len(p), mostPlain)
		var head [12]byte
		binary.LittleEndian.PutUint32(head[:], magic)
		head[4] = plainFrame
		binary.LittleEndian.PutUint32(head[5:], uint32(n))
		block := uint32(n)<<3 | 1 // raw, the last
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
		return s.Plain(nil) // nothing at all is not zstd
	}
	return s.Flush()
}
