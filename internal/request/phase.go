package request

import "sync/atomic"

// A Phase is the present work of the action of a request. The goroutine of the action sets the phase. The engine reads it, on any
// goroutine, when another driver takes the loop from the action. In the zero value, the action does none of the following work:
//
//	routing    user code finds the route
//	producing  a streamed answer is made on the loop
//	answering  an answer is being sent in pieces, also while one is made
type Phase struct{ set atomic.Uint32 }

const (
	routing = 1 << iota
	producing
	answering
)

// Routes sets whether user code finds the route.
func (p *Phase) Routes(on bool) { p.put(routing, on) }

// Produces sets whether a streamed answer is made on the loop.
func (p *Phase) Produces(on bool) { p.put(producing, on) }

// Answers records that an answer is sent in pieces. It returns false if that was recorded before.
func (p *Phase) Answers() (begins bool) {
	begins = !p.Answering()
	p.put(answering, true)
	return begins
}

// put has one writer at a time.
func (p *Phase) put(bit uint32, on bool) {
	was := p.set.Load()
	is := was &^ bit
	if on {
		is |= bit
	}
	if is != was {
		p.set.Store(is)
	}
}

// End returns to the zero value, for the next request.
func (p *Phase) End() {
	if p.set.Load() != 0 {
		p.set.Store(0)
	}
}

// Routing reports whether user code finds the route.
func (p *Phase) Routing() bool { return p.set.Load()&routing != 0 }

// Producing reports whether a streamed answer is made on the loop.
func (p *Phase) Producing() bool { return p.set.Load()&producing != 0 }

// Answering reports whether an answer is being sent in pieces.
func (p *Phase) Answering() bool { return p.set.Load()&answering != 0 }
