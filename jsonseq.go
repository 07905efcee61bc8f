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
	// seqAtOnce is the maximum length of a sequence that is encoded before the response is sent, in bytes.
	seqAtOnce = 64 << 10
	// seqPiece is the length at which a piece of a longer sequence is sent, in bytes.
	seqPiece = 12 << 10
)

// seqBuffers holds buffers for the pieces. The last element of a piece may exceed seqPiece by 2 KiB.
var seqBuffers = sync.Pool{New: func() any { return new([seqPiece + 2<<10]byte) }}

// JSONSeq answers 200 with the elements of seq as a JSON array. It encodes each element when seq yields it, so the
// elements need not be in memory together. An array of up to 64 KB is encoded before JSONSeq returns.
//
// A longer array is streamed. The rest of seq runs when the response is sent, after the action has returned, in a
// coroutine that alternates with the request's goroutine. seq may use the request, but nothing that the action closes
// on return: seq itself should open and close its sources. While the array is streamed, an element that cannot be encoded,
// or a panic, cuts the connection, as for [Stream]. For HEAD the rest does not run. If the response is never sent, the
// garbage collector stops seq.
func JSONSeq[T any](seq iter.Seq[T], options ...JSONOption) Response {
	x := exchange.NewOwn(&blockJSON.block)
	e, stop := jsonwire.NewSequence(x.Buf[:0], seq, jsonOptions(options))
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
	x.Buf = nil // the encoder owns it
	return r.producing(func(r *Request, planned *exchange.Answer) Response {
		if !rest.used.CompareAndSwap(false, true) {
			return failLate(planned, exchange.ErrStale)
		}
		defer runtime.KeepAlive(rest) // otherwise the cleanup stops the sequence while it runs
		defer endSeq(rest.stop, r.app.log)
		return (&streamWriter{r: r, planned: planned}).run(func(w io.Writer) error {
			return writeSequence(w, e)
		})
	})
}

// seqRest is the rest of a sequence that exceeds seqAtOnce.
type seqRest struct {
	stop func()
	used atomic.Bool
}

// endSeq stops a sequence before its end. A sequence that continues after that panics. The panic is only logged, because
// there is no answer to report it.
func endSeq(stop func(), logger *slog.Logger) {
	defer func() {
		if v := recover(); v != nil {
			logger.Error("panic in a sequence that was stopped", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	stop()
}

// writeSequence writes the encoded part, then the rest of the sequence.
func writeSequence[T any](w io.Writer, s *jsonwire.Sequence[T]) error {
	if _, err := w.Write(s.Buf); err != nil {
		return err
	}
	x := exchange.NewOwn(nil)
	x.Buf = s.Buf
	x.Free() // another response can use the large buffer
	piece := seqBuffers.Get().(*[seqPiece + 2<<10]byte)
	defer seqBuffers.Put(piece)
	return s.WriteRest(w, piece[:], seqPiece)
}
