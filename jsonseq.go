package dunlin

import (
	"fmt"
	"io"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

const (
	// seqHeld is how much of a sequence JSONSeq encodes at once, in bytes.
	seqHeld = 64 << 10
	// seqPiece is how much a longer one encodes before it sends, in bytes.
	seqPiece = 16 << 10
)

// JSONSeq answers 200 with the elements of seq as a JSON array, encoding each
// as it comes, so that the whole never exists but as JSON. An array of up to
// 64 KB is encoded at once, like the value given to [JSON].
//
// A longer one is streamed: what is left of seq runs when the response is sent,
// after the action has returned, in a coroutine of its own that takes turns with
// the request's goroutine. The request may still be used; what the action
// closes when it returns may not, so let seq itself open and close what it reads
// from. From there on an element that cannot be encoded, or a panic, cuts the
// connection, as [Stream] says. For HEAD the rest does not run. A response that
// is never sent has seq stopped by the garbage collector.
func JSONSeq[T any](seq iter.Seq[T], options ...JSONOption) Response {
	x := newExtra(blockJSON)
	next, stop := iter.Pull(seq)
	e := &seqEncoder[T]{next: next, options: wireOptions(options), buf: append(x.buf[:0], '[')}
	outgrown := false
	defer func() {
		if !outgrown {
			stop()
		}
	}()
	more, err := e.encode(seqHeld)
	if !more || err != nil {
		return x.json(e.buf, err)
	}
	outgrown = true
	rest := &seqRest{stop: stop}
	runtime.AddCleanup(rest, func(stop func()) { go stop() }, stop)
	r := x.json(nil, nil)
	x.buf = nil // the encoder has it
	return r.producing(func(r *Request, resp *Response) Response {
		if !rest.used.CompareAndSwap(false, true) {
			return resp.failLate(errStale)
		}
		defer rest.stop()
		return (&streamWriter{r: r, resp: resp}).run(e.writeRest)
	})
}

// seqRest is what is left of a sequence that has outgrown seqHeld.
type seqRest struct {
	stop func()
	used atomic.Bool
}

// seqEncoder encodes a sequence as an array, piece by piece.
type seqEncoder[T any] struct {
	next    func() (T, bool)
	options jsonwire.Options
	buf     []byte
	n       int // elements so far
}

// encode appends elements until buf has outgrown most bytes or there are no
// more; then it closes the array.
func (e *seqEncoder[T]) encode(most int) (more bool, err error) {
	for len(e.buf) <= most {
		v, ok := e.next()
		if !ok {
			e.buf = append(e.buf, ']')
			return false, nil
		}
		if e.n > 0 {
			e.buf = append(e.buf, ',')
		}
		if e.buf, err = jsonwire.Append(e.buf, &v, e.options); err != nil {
			return false, fmt.Errorf("element %d: %w", e.n, err)
		}
		e.n++
	}
	return true, nil
}

// writeRest writes what is encoded, then what is left of the sequence.
func (e *seqEncoder[T]) writeRest(w io.Writer) error {
	for more := true; ; {
		if _, err := w.Write(e.buf); err != nil || !more {
			return err
		}
		if cap(e.buf) > 2*seqPiece {
			e.buf = make([]byte, 0, seqPiece+seqPiece/8)
		}
		e.buf = e.buf[:0]
		var err error
		if more, err = e.encode(seqPiece); err != nil {
			return fmt.Errorf("JSON response: %w", err)
		}
	}
}
