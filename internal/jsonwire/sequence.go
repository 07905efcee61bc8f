package jsonwire

import (
	"fmt"
	"io"
	"iter"
)

// A Sequence encodes an iterator's elements as an array, piece by piece. The iterator runs in a coroutine. The caller's goroutine
// switches to the coroutine once for each piece, not for each element. A Sequence is not safe for concurrent use.
type Sequence[T any] struct {
	// Buf is the output of Encode that the caller has not yet removed.
	Buf []byte

	next    func() (struct{}, bool) // continues the coroutine, which appends to Buf
	options Options
	most    int // the coroutine pauses when Buf has more than most bytes
	n       int // number of encoded elements
	err     error
}

// NewSequence appends the beginning of the array to buf. The caller must call stop, unless it encodes the array to its end. stop
// panics if seq continues after yield has returned false.
func NewSequence[T any](buf []byte, seq iter.Seq[T], options Options) (s *Sequence[T], stop func()) {
	s = &Sequence[T]{options: options, Buf: append(buf, '[')}
	s.next, stop = iter.Pull(s.pieces(seq))
	return s, stop
}

// pieces returns the coroutine. The coroutine ends after it has closed the array or has set err.
func (s *Sequence[T]) pieces(seq iter.Seq[T]) iter.Seq[struct{}] {
	return func(pause func(struct{}) bool) {
		for v := range seq {
			if s.n > 0 {
				s.Buf = append(s.Buf, ',')
			}
			if s.Buf, s.err = Append(s.Buf, &v, s.options); s.err != nil {
				s.err = fmt.Errorf("element %d: %w", s.n, s.err)
				return
			}
			s.n++
			if len(s.Buf) > s.most && !pause(struct{}{}) {
				return
			}
		}
		s.Buf = append(s.Buf, ']')
	}
}

// Encode appends elements until Buf has more than limit bytes or seq has no more elements. After the last element it closes the
// array, and more is false.
func (s *Sequence[T]) Encode(limit int) (more bool, err error) {
	s.most = limit
	_, more = s.next()
	return more, s.err
}

// WriteRest encodes the rest of the sequence into buf, piece by piece, and writes each piece to w. A piece ends when it has more
// than limit bytes.
func (s *Sequence[T]) WriteRest(w io.Writer, buf []byte, limit int) error {
	for more := true; more; {
		s.Buf = buf[:0]
		var err error
		if more, err = s.Encode(limit); err != nil {
			return fmt.Errorf("JSON response: %w", err)
		}
		if _, err = w.Write(s.Buf); err != nil {
			return err
		}
	}
	return nil
}
