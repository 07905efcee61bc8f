package dunlin

import (
	"fmt"
	"io"
	"iter"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

const (
	// seqHeld is how much of a sequence JSONSeq encodes at once, in bytes.
	seqHeld = 64 << 10
	// seqPiece is how much a longer one encodes before it sends, in bytes.
	seqPiece = 12 << 10
)

// seqBuffers holds what the pieces are encoded into, with room for a last element.
var seqBuffers = sync.Pool{New: func() any { return new([seqPiece + 2<<10]byte) }}

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
	x := exchange.NewOwn(&blockJSON.block)
	e := &seqEncoder[T]{options: wireOptions(options), buf: append(x.Buf[:0], '[')}
	next, stop := iter.Pull(e.pieces(seq))
	e.next = next
	outgrown := false
	defer func() {
		if !outgrown {
			stop()
		}
	}()
	more, err := e.encode(seqHeld)
	if !more || err != nil {
		return encoded(x, e.buf, err)
	}
	outgrown = true
	rest := &seqRest{stop: stop}
	runtime.AddCleanup(rest, func(stop func()) { go endSeq(stop, slog.Default()) }, stop)
	r := encoded(x, nil, nil)
	x.Buf = nil // the encoder has it
	return r.producing(func(r *Request, resp *Response) Response {
		if !rest.used.CompareAndSwap(false, true) {
			return resp.failLate(exchange.ErrStale)
		}
		defer runtime.KeepAlive(rest) // or the collector stops it, too
		defer endSeq(rest.stop, r.app.log)
		return (&streamWriter{r: r, resp: resp}).run(e.writeRest)
	})
}

// seqRest is what is left of a sequence that has outgrown seqHeld.
type seqRest struct {
	stop func()
	used atomic.Bool
}

// endSeq stops a sequence that is not read to its end. One that goes on all the same
// panics, for the log only: no answer is left that could tell.
func endSeq(stop func(), logger *slog.Logger) {
	defer func() {
		if v := recover(); v != nil {
			logger.Error("panic in a sequence that was stopped", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	stop()
}

// seqEncoder encodes a sequence as an array, piece by piece. The sequence runs in a
// coroutine, which the request's goroutine enters once for each piece and not for
// each element.
type seqEncoder[T any] struct {
	next    func() (struct{}, bool) // has the coroutine fill buf
	options jsonwire.Options
	buf     []byte
	most    int // bytes in buf after which the coroutine pauses
	n       int // elements so far
	err     error
}

// pieces is the coroutine. It ends with the array, or with err.
func (e *seqEncoder[T]) pieces(seq iter.Seq[T]) iter.Seq[struct{}] {
	return func(pause func(struct{}) bool) {
		for v := range seq {
			if e.n > 0 {
				e.buf = append(e.buf, ',')
			}
			if e.buf, e.err = jsonwire.Append(e.buf, &v, e.options); e.err != nil {
				e.err = fmt.Errorf("element %d: %w", e.n, e.err)
				return
			}
			e.n++
			if len(e.buf) > e.most && !pause(struct{}{}) {
				return
			}
		}
		e.buf = append(e.buf, ']')
	}
}

// encode appends elements until buf has outgrown most bytes or there are no
// more; then it closes the array.
func (e *seqEncoder[T]) encode(most int) (more bool, err error) {
	e.most = most
	_, more = e.next()
	return more, e.err
}

// writeRest writes what is encoded, then what is left of the sequence.
func (e *seqEncoder[T]) writeRest(w io.Writer) error {
	if _, err := w.Write(e.buf); err != nil {
		return err
	}
	x := exchange.NewOwn(nil)
	x.Buf = e.buf
	x.Free() // the large buffer serves another response meanwhile
	pieces := seqBuffers.Get().(*[seqPiece + 2<<10]byte)
	defer seqBuffers.Put(pieces)
	for more := true; more; {
		e.buf = pieces[:0]
		var err error
		if more, err = e.encode(seqPiece); err != nil {
			return fmt.Errorf("JSON response: %w", err)
		}
		if _, err = w.Write(e.buf); err != nil {
			return err
		}
	}
	return nil
}
