//go:build linux

package looph2

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// A stream is the adapter's state of a request until its answer is sent and its action has returned: Stream.Owner.
type stream struct {
	s  *session
	st *http2.Stream // the loop's; reused for another stream once done and over
	*flow
	*resting
	pace
	limit
	holding

	// Fields of the loop.
	req    http2.Request // set if the request is not answered at once
	here   []byte        // the received part of a gathered body
	begun  int64         // arrival of the request
	kind   kind
	intake intake
	route  *exchange.Route // set when its action begins

	kept atomic.Bool // code outside its loop has referred to it: it is not reused

	// Guarded by s.mu: the exchange between its goroutine and the loop.
	notified bool     // in the session's inbox
	complete *pending // nil for none
	answer   answer
	action   action
	closing  bool // the connection ends after the answer
	noRoom   bool // others need its memory
	slow     bool // the client takes too little of the answer

	refusal *refusal // answer in place of its action's, sent by a worker
}

// A resting is the unsent part of a complete answer. Like a flow, it is allocated on demand: other streams, such as those whose
// actions block, share nothing, which is never written to.
//
// The loop of a stream changes the pointer to its resting under s.mu. s.mu also guards rest, whole and body, since an eviction
// drops them while the loop does not look. The other fields belong to the loop.
type resting struct {
	rest     []byte
	whole    exchange.Answer  // its memory contains rest
	body     engine.HeldBody  // the charge for rest
	untaken  int64            // bytes of body
	inFlight request.InFlight // the shard that counts it as in flight
}

var nothing resting

// rests reports whether a complete answer has not been sent entirely. It is for the stream's loop, or with s.mu held.
func (own *stream) rests() bool { return own.resting != &nothing }

var (
	streams  = sync.Pool{New: func() any { return new(stream) }}
	restings = sync.Pool{New: func() any { return new(resting) }}
)

func newStream(s *session, st *http2.Stream) *stream {
	own := streams.Get().(*stream)
	own.s, own.st, own.flow, own.resting = s, st, &still, &nothing
	own.free = s.h2.Window(st)
	st.Owner = own
	return own
}

const (
	keptHere = 8 << 10 // bytes of a gathered body that a stream keeps for reuse
	keptReq  = 4 << 10 // bytes of a request that a stream keeps for reuse
)

// recycle makes the stream available for reuse, if only its loop refers to it.
func (own *stream) recycle() {
	if own.kept.Load() {
		return
	}
	here, req := own.here[:0], own.req
	if cap(here) > keptHere {
		here = nil
	}
	if req.Fields.Footprint() > keptReq {
		req = http2.Request{}
	}
	*own = stream{here: here, req: req}
	streams.Put(own)
}

// trailerCost is the overhead of a trailer beyond its text, in bytes: its places in a map and a list.
const trailerCost = 96

// keepTrailers copies the trailers of a request. The caller charges them, see holdInput. s.mu is held.
func (own *stream) keepTrailers(fields *hpack.List) {
	trailers := make(http.Header, fields.Len())
	cost := 0
	for i := range fields.Len() {
		name, value := fields.Field(i)
		trailers.Add(string(name), string(value))
		cost += trailerCost + len(name) + len(value)
	}
	in := &own.flows().in
	in.trailers, in.trailersCost = trailers, cost
}

// setCanceled informs the stream's goroutine that the answer is not needed any more. It frees the reservation for the answer, and the
// part of the answer that was made. If the action has not begun, it also frees the memory of the request. s.mu is held.
func (own *stream) setCanceled() {
	own.answer.on(cancel)
	own.hasMoved()
	own.trimReservation(0) // the action may run on for long
	if own.out.size > 0 {
		own.out.drop()
		own.holdOutput()
	}
	if own.headsCost > 0 {
		own.dropHeads()
	}
	if own.action.waits() { // the job will not look at it
		own.req, own.here = http2.Request{}, nil
		own.dropUnread()
		if own.in.trailers != nil {
			own.in.trailers, own.in.trailersCost = nil, 0
		}
		own.holdInput()
	}
}

// cancelAll ends the request's context.
func (own *stream) cancelAll() {
	own.s.mu.Lock()
	cancel := own.cancel
	own.s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// drop ends the work for a stream that ended on the wire before its answer was sent.
func (s *session) drop(own *stream) {
	own.freeRest()
	if own.intake == gathering {
		s.endGathering(own, refuse)
	}
	s.mu.Lock()
	own.setCanceled()
	postponed := own.action == postponed
	s.mu.Unlock()
	if postponed {
		s.callOff(own)
	}
	own.cancelAll()
	s.conclude(own)
}

// conclude frees the stream's place when its action has returned and its answer is sent.
func (s *session) conclude(own *stream) {
	s.mu.Lock()
	s.concludeLocked(own)
}

// concludeLocked is conclude with s.mu held, which it unlocks.
func (s *session) concludeLocked(own *stream) {
	st := own.st
	if !own.settled() || !st.Closed() && (own.rests() || own.pendingOut()) {
		s.mu.Unlock()
		return
	}
	own.finalize()
	s.mu.Unlock()
	if !st.Closed() {
		switch {
		case !st.Sent():
			s.h2.Reset(st, http2.InternalError) // there is no answer, or an incomplete one
		default:
			s.h2.Part(st) // the rest of the body is not needed
		}
	}
	s.h2.Done(st)
	st.Owner = nil
	if s.h2.Len() == 0 {
		s.since = s.d.Now()
	}
	own.recycle()
}

// settled reports whether the action has returned, and the loop has its answer, or no action has begun. s.mu is held.
func (own *stream) settled() bool {
	return own.action == idle || own.action == returned && !own.notified
}

// pendingOut reports whether pieces of the answer, or its end, are still unsent. s.mu is held.
func (own *stream) pendingOut() bool {
	switch own.answer {
	case finished:
		return true
	case begun, aborted:
		return own.unsent() > 0
	}
	return false
}

// finalize frees the memory that the stream holds. s.mu is held.
func (own *stream) finalize() {
	own.action.on(free)
	own.stop()
	own.dropComplete()
	if own.timer != nil {
		own.timer.Stop()
	}
	own.hold(memory.Input, 0)
	own.hold(memory.Output, 0)
	if a := own.account; a != nil {
		own.account = nil
		if !a.CloseIdle() {
			a.Close()
		}
	}
}
