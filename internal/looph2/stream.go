//go:build linux

package looph2

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A stream is the adapter's state of a request until its response is sent and its action has returned: Stream.Owner.
type stream struct {
	s  *session
	st *http2.Stream // the loop's; reused once done and concluded
	*flow
	*resting

	// The loop's.
	req       http2.Request // of a request that is not answered at once
	here      []byte        // received data of a buffered body
	begun     int64         // time of arrival
	came      int64         // bytes of its body since the last judgement
	pace      exchange.BodyPace
	bodied    bool                  // the head did not end it
	gathering bool                  // more of the body must arrive before the action begins
	running   bool                  // the action has begun, or is queued for a worker
	ended     bool                  // the loop knows that the action has returned
	putOff    bool                  // it waits for its client, see backlog.go
	delayed   bool                  // it has waited for its client, or for memory
	dropped   bool                  // it ended before its response was sent
	done      bool                  // its place is free
	concluded bool                  // it has ended in every respect
	headOnly  bool                  // the answer to HEAD
	streamed  bool                  // its action reads its body while it arrives
	tunnel    bool                  // an extended CONNECT: its body is data of another protocol
	counts    *exchange.RouteCounts // counts of its route, once it was answered
	route     *exchange.Route       // once its action begins
	target    exchange.Target       // the request's target, 0 unless it had to wait for memory
	sent      int64                 // bytes of the response's body
	free      int64                 // bytes that its initial window permitted
	taking    taking                // while its window is closed

	kept atomic.Bool // other goroutines may refer to it: it is not reused

	// Guarded by s.mu: exchanged between its goroutine and the loop.
	posted    bool
	complete  *pending // nil for none
	started   bool     // the answer has begun
	finished  bool     // flow.out is complete
	outEnded  bool     // the end was sent
	aborted   bool     // the response is cut off
	late      bool     // it was answered without its action
	lateDone  bool     // the late response is ready
	lateBack  bool     // the late action has returned
	limit     limit    // state of the action's timeout
	returned  bool     // the action has returned
	canceled  bool     // the response is not needed any more
	closing   bool     // the connection is to end after the response
	noRoom    bool     // it is being evicted
	slow      bool     // the client reads too slowly
	ahead     bool     // it has a reservation for the response
	inLine    bool     // its job is queued for a worker
	apart     bool     // its response is produced in the background
	awaits    bool     // it waits for memory for its response
	finalized bool
	cancel    context.CancelFunc
	timeout   *exchange.TimeoutContext
	timer     *time.Timer // of the timeout
	wire      *Wire       // while the action runs

	refusal *refusal // the response that user code makes in place of its action

	account *admission.Account
	held    [2]int64 // bytes charged to it: input, output
}

// A resting is the unsent part of a complete response. As with flow, streams with blocked actions have none: they share
// nothing, which is never written to.
//
// The loop changes, under s.mu, which one a stream has. The fields rest, answer and body are guarded by s.mu, since an eviction
// drops them while the loop does not look. The others belong to the loop.
type resting struct {
	rest     []byte
	answer   exchange.Answer // owner of the memory of rest
	body     engine.HeldBody // the charge for the memory of rest
	untaken  int64           // bytes of body
	inFlight *tally.Shard    // the shard that counts it as in flight meanwhile
}

var nothing resting

// rests reports whether a complete response is unsent, for the stream's loop or with s.mu held.
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
	keptHere = 8 << 10 // bytes of a buffered body that a stream keeps for its next request
	keptReq  = 4 << 10 // bytes of a request head
)

// recycle makes the stream reusable if only its loop refers to it.
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

// trailerCost is the memory of a trailer beside its text, in bytes: entries in a map and a list.
const trailerCost = 96

// keepTrailers keeps the trailers of a request. The caller charges them, see holdInput. s.mu is held.
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

// setCanceled tells the stream's goroutine that the response is not needed any more. It releases the memory of a job that has
// no goroutine yet, and in any case the reservation for the response and the part that was made. s.mu is held.
func (own *stream) setCanceled() {
	if !own.canceled {
		own.canceled = true
		if own.gone != nil {
			close(own.gone)
		}
	}
	own.hasMoved()
	own.keepAhead(0) // the action may run on for long
	if own.out.size > 0 {
		own.out.drop()
		own.holdOutput()
	}
	if own.headsCost > 0 {
		own.dropHeads()
	}
	if own.inLine { // its job does not use it
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

// drop ends the work for a stream that was reset before its response was sent.
func (s *session) drop(own *stream) {
	own.dropped = true
	own.freeRest()
	if own.gathering {
		own.gathering = false
		s.bodies--
	}
	s.mu.Lock()
	own.setCanceled()
	s.mu.Unlock()
	if own.putOff {
		s.callOff(own)
	}
	own.cancelAll()
	s.conclude(own)
}

// conclude frees the stream's place when its action has returned and its response is sent.
func (s *session) conclude(own *stream) {
	if own.concluded || own.running && !own.ended {
		return
	}
	st := own.st
	if !own.dropped && !st.Closed() {
		if own.rests() || own.pendingOut() {
			return
		}
		switch {
		case !st.Sent():
			s.h2.Reset(st, http2.InternalError) // the response is missing or truncated
		default:
			s.h2.Part(st) // the rest of the body is not needed
		}
	}
	if !own.done {
		own.done = true
		s.h2.Done(st)
	}
	own.concluded = true
	st.Owner = nil
	s.mu.Lock()
	own.finalize()
	s.mu.Unlock()
	if s.h2.Len() == 0 {
		s.since = s.d.Now()
	}
	own.recycle()
}

// pendingOut reports whether pieces of the response are unsent.
func (own *stream) pendingOut() bool {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	return !own.canceled && own.started && !own.outEnded && (own.finished && !own.aborted || own.unsent() > 0)
}

// finalize releases the memory of the stream. s.mu is held.
func (own *stream) finalize() {
	if own.finalized {
		return
	}
	own.finalized = true
	own.stop()
	own.dropComplete()
	if own.timer != nil {
		own.timer.Stop()
	}
	own.hold(admission.Input, 0)
	own.hold(admission.Output, 0)
	if a := own.account; a != nil {
		own.account = nil
		if !a.CloseIdle() {
			a.Close()
		}
	}
}
