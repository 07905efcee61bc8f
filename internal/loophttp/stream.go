//go:build linux

package loophttp

import (
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A stream writes a body piece by piece, each when enough has been gathered
// or when told to. It gathers in the driver's output, right behind what
// has to go before, so that a stream has no buffer of its own.
//
//	d.Out:  … head │ room for a chunk header │ data
//	               └ at
type stream struct {
	x       *wire
	chunked bool // else the length was announced, or the connection ends the body
	open    bool // a piece is being gathered
	at      int  // where it begins in d.Out, its header's room included
	err     error
}

const (
	// streamChunk is how much a stream gathers before it sends it, in bytes.
	streamChunk = 8 << 10
	// chunkRoom is left in front of gathered data for a chunk's header.
	chunkRoom = len("2000\r\n")
	// directWrite is the length in bytes from which a single write is sent from
	// where it lies.
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

// gathered returns how much data the present piece has, beginning one if there
// is none.
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

// seal makes the piece gathered so far ready to be sent.
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
		d.Out = append(d.Out[:s.at], d.Out[start:]...) // a short header leaves a gap
		d.Out = append(d.Out, http1.CRLF...)
	}
}

// Flush sends what has been written so far.
func (s *stream) Flush() error {
	if s.err != nil {
		return s.err
	}
	s.seal()
	return s.note(s.x.flushInTime())
}

// note keeps the first error, with which the connection is over.
func (s *stream) note(err error) error {
	if err != nil && s.err == nil {
		s.err = err
		s.x.closing = true
		s.x.c.Close()
	}
	return s.err
}

// direct sends p behind what was gathered, as a piece of its own, from where it
// lies: when it returns p is sent, or the connection is over.
func (s *stream) direct(p []byte) (n int) {
	s.seal()
	d := s.x.d
	d.Reserve(2 * chunkRoom)
	if s.chunked {
		d.Out = http1.AppendChunkHeader(d.Out, len(p))
	}
	d.WriteOwned(p[:len(p):len(p)], nil) // what lies behind p is not held for this client
	if s.chunked {
		d.Out = append(d.Out, http1.CRLF...)
	}
	if s.Flush() != nil {
		return 0
	}
	return len(p)
}

// sendFile sends what lim allows of f.
func (s *stream) sendFile(lim *io.LimitedReader, f *os.File) (int64, error) {
	if err := s.Flush(); err != nil {
		return 0, err
	}
	var sent int64
	err := s.x.inTime(func(patience time.Duration) error {
		n, err := s.x.c.SendFile(f, lim.N, patience)
		lim.N -= n
		sent += n
		return err
	})
	return sent, s.note(err)
}

// trailerName returns the name that a key of trailers stands for.
func trailerName(key string) string {
	name, prefixed := strings.CutPrefix(key, http.TrailerPrefix)
	if prefixed {
		return http.CanonicalHeaderKey(name)
	}
	return key
}

// finish ends the body. The engine sends what there is.
func (s *stream) finish(trailers http.Header) {
	s.seal()
	if !s.chunked || s.err != nil {
		return
	}
	out := append(s.x.d.Out, http1.LastChunk...)
	for _, name := range exchange.SortedKeys(trailers) {
		for _, v := range trailers[name] {
			if name := trailerName(name); exchange.CheckField(name, v) == nil {
				out = http1.AppendField(out, name, exchange.TrimBlanks(v))
			}
		}
	}
	s.x.d.Out = append(out, http1.CRLF...)
}
