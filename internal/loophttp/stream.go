//go:build linux

package loophttp

import (
	"io"
	"net/http"
	"os"
	"time"

	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// A stream writes a body in pieces. It sends a piece when enough data is gathered or when Flush is called. It gathers in the
// driver's output, after the preceding bytes, so that it needs no buffer of its own.
//
//	d.Out:  … head │ room for a chunk header │ data
//	               └ at
type stream struct {
	x       *wire
	chunked bool // otherwise the length was announced, or the end of the connection ends the body
	open    bool // data is being gathered
	at      int  // where the gathered piece begins in d.Out, with the room for its header
	err     error
}

const (
	// streamChunk is the number of bytes that a stream gathers before it sends them.
	streamChunk = 8 << 10
	// chunkRoom is the room for a chunk header before gathered data.
	chunkRoom = len("2000\r\n")
	// directWrite is the minimum length, in bytes, of a write that is sent without copying.
	directWrite = streamChunk
)

// Write adds p to the body.
func (s *stream) Write(p []byte) (written int, err error) {
	for len(p) > 0 && s.err == nil {
		if len(p) >= directWrite {
			n := s.direct(p)
			return written + n, s.err
		}
		s.x.d.Reserve(chunkRoom + len(p) + len(http1.CRLF))
		n := min(streamChunk-s.gathered(), len(p))
		s.x.d.Out = append(s.x.d.Out, p[:n]...)
		p = p[n:]
		written += n
		if s.gathered() == streamChunk {
			_ = s.Flush()
		}
	}
	return written, s.err
}

// gathered returns the length of the current piece. It begins a piece if there is none.
func (s *stream) gathered() int {
	d := s.x.d
	room := 0
	if s.chunked {
		room = chunkRoom
	}
	if !s.open {
		var empty [chunkRoom]byte
		s.open, s.at = true, len(d.Out)
		d.Out = append(d.Out, empty[:room]...)
	}
	return len(d.Out) - s.at - room
}

// seal completes the gathered piece so that it can be sent.
func (s *stream) seal() {
	if !s.open {
		return
	}
	d := s.x.d
	n := s.gathered()
	s.open = false
	switch {
	case n == 0:
		d.Out = d.Out[:s.at]
	case s.chunked:
		start := s.at + http1.PutChunkHeader(d.Out[s.at:s.at+chunkRoom], n)
		d.Out = append(d.Out[:s.at], d.Out[start:]...) // a header shorter than its room leaves a gap
		d.Out = append(d.Out, http1.CRLF...)
	}
}

// Flush sends all data written so far.
func (s *stream) Flush() error {
	if s.err != nil {
		return s.err
	}
	s.seal()
	return s.recordError(s.x.flushWithDeadline())
}

// recordError records the first error, after which the connection is unusable.
func (s *stream) recordError(err error) error {
	if err != nil && s.err == nil {
		s.err = err
		s.x.closing = true
		s.x.Conn.Close()
		s.x.Cancel() // the event of a hangup may be calling it on another goroutine: the error is returned after its end
	}
	return s.err
}

// direct sends p as a piece of its own after the gathered data, without copying it. When it returns, p was sent or the
// connection is unusable.
func (s *stream) direct(p []byte) (n int) {
	s.seal()
	d := s.x.d
	d.Reserve(2 * chunkRoom)
	if s.chunked {
		d.Out = http1.AppendChunkHeader(d.Out, len(p))
	}
	d.WriteOwned(p[:len(p):len(p)], nil) // limit the capacity: memory after p is not charged to this client
	if s.chunked {
		d.Out = append(d.Out, http1.CRLF...)
	}
	if s.Flush() != nil {
		return 0
	}
	return len(p)
}

// sendFile sends the part of f that lim allows.
func (s *stream) sendFile(lim *io.LimitedReader, f *os.File) (int64, error) {
	if err := s.Flush(); err != nil {
		return 0, err
	}
	var sent int64
	err := s.x.withDeadline(func(patience time.Duration) error {
		n, err := s.x.Conn.SendFile(f, lim.N, patience)
		lim.N -= n
		sent += n
		return err
	})
	return sent, s.recordError(err)
}

// finish ends the body. The engine sends the output.
func (s *stream) finish(trailers http.Header) {
	s.seal()
	if !s.chunked || s.err != nil {
		return
	}
	out := append(s.x.d.Out, http1.LastChunk...)
	for name, value := range request.Sendable(trailers) {
		out = http1.AppendField(out, name, value)
	}
	s.x.d.Out = append(out, http1.CRLF...)
}
