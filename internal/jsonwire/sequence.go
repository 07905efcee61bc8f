package jsonwire

import (
	"fmt"
	"io"
	"iter"
)

// A Sequence encodes a sequence as an array, piece by piece. The sequence runs in a
// coroutine, which the caller's goroutine enters once for each piece and not for
// each element.
type Sequence[T any] struct {
	// Buf is the output of Encode: the array up to now, or the part that the caller has not yet removed.
	Buf []byte

	next    func() (struct{}, bool) // runs the coroutine, which fills Buf
	options Options
	most    int // number of bytes in Buf after which the coroutine pauses
	n       int // number of encoded elements
	err     error
}

// NewSequence begins the array in buf. The caller must call stop unless it encodes the array to its end. stop panics if the sequence
// continues although yield has returned false.
func NewSequence[T any](buf []byte, seq iter.Seq[T], options Options) (s *Sequence[T], stop func()) {
	s = &Sequence[T]{options: options, Buf: append(buf, '[')}
	s.next, stop = iter.Pull(s.pieces(seq))
	return s, stop
}

// pieces is the coroutine. It ends with the array, or with err.
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

// Encode appends elements until Buf has more than limit bytes or there are no more elements. Then it closes the array.
func (s *Sequence[T]) Encode(limit int) (more bool, err error) {
	s.most = limit
	_, more = s.next()
	return more, s.err
}

// WriteRest encodes the rest of the sequence into buf, piece by piece, and writes it.
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
