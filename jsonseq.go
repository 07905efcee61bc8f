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
	// seqAtOnce is how much of a sequence JSONSeq encodes at once, in bytes.
	seqAtOnce = 64 << 10
	// seqPiece is how much a longer one encodes before it sends, in bytes.
	seqPiece = 12 << 10
)

// seqBuffers holds what the pieces are encoded into, with room for a last element.
var seqBuffers = sync.Pool{New: func() any { return new([seqPiece + 2<<10]byte) }}

// JSONSeq answers 200 with the elements of seq as a JSON array, encoding each as it comes, so that the whole never
// exists but as JSON. An array of up to 64 KB is encoded at once, like the value given to [JSON].
//
// A longer one is streamed: what is left of seq runs when the response is sent, after the action has returned, in a
// coroutine of its own that takes turns with the request's goroutine. The request may still be used; what the action
// closes when it returns may not, so let seq itself open and close what it reads from. From there on an element that
// cannot be encoded, or a panic, cuts the connection, as [Stream] says. For HEAD the rest does not run. A response that
// is never sent has seq stopped by the garbage collector.
func JSONSeq[T any](seq iter.Seq[T], options ...JSONOption) Response {
	x := exchange.NewOwn(&blockJSON.block)
	e, stop := jsonwire.NewSequence(x.Buf[:0], seq, wireOptions(options))
	outgrown := false
	defer func() {
		if !outgrown {
			stop()
		}
	}()
	more, err := e.Encode(seqAtOnce)
	if !more || err != nil {
		return encoded(x, e.Buf, err)
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
		return (&streamWriter{r: r, resp: resp}).run(func(w io.Writer) error {
			return writeSequence(w, e)
		})
	})
}

// seqRest is what is left of a sequence that has outgrown seqAtOnce.
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

// writeSequence writes what is encoded, then what is left of the sequence.
func writeSequence[T any](w io.Writer, s *jsonwire.Sequence[T]) error {
	if _, err := w.Write(s.Buf); err != nil {
		return err
	}
	x := exchange.NewOwn(nil)
	x.Buf = s.Buf
	x.Free() // the large buffer serves another response meanwhile
	piece := seqBuffers.Get().(*[seqPiece + 2<<10]byte)
	defer seqBuffers.Put(piece)
	return s.WriteRest(w, piece[:], seqPiece)
}
