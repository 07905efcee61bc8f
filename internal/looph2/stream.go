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

// A stream is what the adapter has of a request until its answer is sent and its action has
// returned: Stream.Owner.
type stream struct {
	s  *session
	st *http2.Stream // the loop's; used for another once done and over
	*flow
	*resting

	// The loop's.
	req       http2.Request // of one that is not answered at once
	here      []byte        // what has come of a body that is gathered
	begun     int64         // when it came
	came      int64         // bytes of its body since the last judgement
	pace      exchange.BodyPace
	bodied    bool                  // the head did not end it
	gathering bool                  // more of the body must come before the action begins
	running   bool                  // the action has begun, or is in line for a worker
	ended     bool                  // ... and the loop knows that it has returned
	putOff    bool                  // it waits for its client, see backlog.go
	delayed   bool                  // it has, or for room
	dropped   bool                  // it was over before its answer was sent
	done      bool                  // its place is free
	concluded bool                  // it is over in every way
	headOnly  bool                  // the answer to HEAD
	streamed  bool                  // its action reads its body as it comes
	tunnel    bool                  // an extended CONNECT, whose body is no message but what another protocol says
	counts    *exchange.RouteCounts // of its route, once it has been answered
	route     *exchange.Route       // once its action begins
	target    exchange.Target       // what was asked for, 0 unless it was to wait for room
	sent      int64                 // bytes of the answer's body
	free      int64                 // of these, how many may be sent by the window that it began with
	taking    taking                // while its window is closed

	kept atomic.Bool // it was known to more than its loop: it is not used again

	// Guarded by s.mu: what its goroutine has for the loop, and the loop for it.
	posted    bool
	complete  *pending // nil for none
	started   bool     // the answer has begun
	finished  bool     // flow.out is the end
	outEnded  bool     // ... and was sent
	aborted   bool     // the answer is cut off
	late      bool     // it was answered without its action
	lateDone  bool     // ... and that answer is here
	lateBack  bool     // ... and the action has returned
	limit     limit    // on the action's time
	returned  bool     // the action has returned
	canceled  bool     // nobody listens any more
	closing   bool     // the connection is to end after the answer
	noRoom    bool     // others need the memory that it holds
	slow      bool     // the client takes too little of the answer
	ahead     bool     // it has reserved room for the answer
	inLine    bool     // its job waits for a worker
	apart     bool     // its answer is made in the background
	awaits    bool     // it waits for room for its answer
	finalized bool
	cancel    context.CancelFunc
	timeout   *exchange.TimeoutContext
	timer     *time.Timer // of the timeout
	wire      *Wire       // while the action runs

	refusal *refusal // what it is answered with instead of by its action, by code of others

	account *admission.Account
	held    [2]int64 // charged to it: input, output
}

// A resting is what has not been sent yet of a complete answer. Like a flow, streams whose actions block have none: theirs
// is nothing, which is never written to.
//
// Which one a stream has is changed by its loop, under s.mu. Rest, answer and body are guarded by s.mu: an eviction drops them while
// the loop does not look, the others are the loop's.
type resting struct {
	rest     []byte
	answer   exchange.Answer // whose body rest lies in
	body     engine.HeldBody // likewise, what is charged
	untaken  int64           // bytes of body
	inFlight *tally.Shard    // where it is counted meanwhile
}

var nothing resting

// rests reports whether a complete answer has not been sent in full, for the stream's loop or with s.mu held.
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
	keptHere = 8 << 10 // bytes of a gathered body that a stream keeps for the next
	keptReq  = 4 << 10 // of a request
)

// recycle has the stream used again, if only its loop knows it.
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

// trailerCost is what a trailer takes beside its text, in bytes: its places in a map and a list.
const trailerCost = 96

// keepTrailers keeps those of a request. Whoever keeps the stream charges them, see holdInput. s.mu is held.
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

// setCanceled tells the stream's goroutine that nobody listens any more. While there is none yet, what the job holds
// is given back, and in any case what is reserved for the answer, or was made of it. s.mu is held.
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
	if own.inLine { // its job will not look at it
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

// drop ends what goes on for a stream that is over on the wire before its answer was sent.
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

// conclude gives the stream's place to others when its action has returned and its answer
// is sent.
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
			s.h2.Reset(st, http2.InternalError) // there is no answer, or half of one
		default:
			s.h2.Part(st) // the rest of the body is of no use
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

// pendingOut reports whether pieces of the answer are still to be sent.
func (own *stream) pendingOut() bool {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	return !own.canceled && own.started && !own.outEnded && (own.finished && !own.aborted || own.unsent() > 0)
}

// finalize gives back what the stream holds. s.mu is held.
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
