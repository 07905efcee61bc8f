package exchange

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A Pipeline is where adapters take requests to: it finds and runs actions and makes
// answers. Its methods may be called on any goroutine, at any time.
type Pipeline interface {
	// NewCall returns a call for the requests that w offers, one after the other.
	NewCall(w Wire) Call

	// IsDraining reports whether every answer that begins closes its connection.
	IsDraining() bool

	// LeastBody returns the least limit on bodies of any route, in bytes: what is
	// announced to be no longer need not be routed to know that it may come.
	LeastBody() int64

	// Takes reports whether a route names the method; those for any do not count.
	Takes(method string) bool

	// Problem returns the error that the client is told by status and detail. The
	// cause is for the log.
	Problem(status int, detail string, cause error) error

	// Status returns the status that err stands for, 500 unless it says another.
	Status(err error) int

	// Answer returns the answer for an error, as an action makes it. It owns memory: it
	// is for one request.
	Answer(err error) Answer

	// NotNow returns an answer of 503 that asks the client to come again. It owns nothing
	// and can be sent any number of times.
	NotNow(detail string) Answer

	// NoMemory returns the error for what the memory budget has no room for.
	NoMemory(what string, met admission.Cap) error

	// Late counts and logs that an action of the route took too long, and returns the
	// answer that is given without it.
	Late(route *Route) Answer
}

// A Call is one request at a time on its way through the pipeline. An adapter makes it
// once for a Wire and uses it for one request after the other. Its methods belong to the
// goroutine that has the request, except where they say otherwise.
type Call interface {
	// State returns what the adapter and the pipeline both know of the request: it is
	// the same for as long as the call lives.
	State() *State

	// Begin makes the call ready for the request in its State. It is not routed: it is
	// answered without an action. read is false for one that could not be read, of
	// which there is no more to be known than what State has.
	Begin(read bool)

	// Find makes the call ready for the request in its State, and finds its action. It
	// runs no code of others and does not block. It is false when code of others must
	// decide: then FindCarefully is to be called.
	Find(host string) (found bool)

	// FindCarefully is Find, and may run code of others, which may block.
	FindCarefully(host string)

	// Run runs the action, and makes its answer ready to be sent, unless that is of the
	// kind Later: it is to be carried out then. A panic is answered.
	Run() Answer

	// CarryOut makes an answer of the kind Later, by Wire.Begin and a Sink where it is
	// long. The answer it returns is ready to be sent.
	CarryOut(Answer) Answer

	// Drop discards the answer of a request that was answered without its action. It
	// does in place of CarryOut what must be done in any case.
	Drop(Answer)

	// Amend makes an answer that no action made ready to be sent.
	Amend(a Answer, source Source) Answer

	// Hooked reports whether Amend and Observe would run code of others, which may
	// block. It may be called while the action runs.
	Hooked() bool

	// Observe tells those who want to know what the client gets: once for each
	// request, before the answer is sent, where State.Watched is set. took is how long
	// the request has taken, below 0 where the adapter has called Clock instead.
	Observe(a Answer, took time.Duration)

	// Clock notes that the request begins now.
	Clock()

	// Succeed takes over from the call of a late action, which runs on, what the
	// answer that is given without it depends on: who observes it, its identity. It may
	// be called on another goroutine than that of the action.
	Succeed(late Call)

	// Context returns own, which is Wire.Context, with the values that middleware has given
	// the request.
	Context(own context.Context) context.Context

	// Params reports whether there are parameters that SetMatch would set.
	Params() bool

	// SetMatch says in a request of net/http what was matched.
	SetMatch(req *http.Request)

	// PassOn takes the payload, in which the body of an answer lies, out of the
	// request: it is the sender's then, with the capacity of what is returned.
	PassOn(body string) []byte

	// Abandon gives back what the request holds of the budget, when the call is left to
	// the collector instead of End.
	Abandon()

	// End ends the request, when its answer is sent or its last byte handed over: what
	// it lent is invalid from here on.
	End()

	// Ended reports, in builds with the race detector, whether a request has ended on the
	// call: there each has a call of its own.
	Ended() bool
}

// A Source says what made an answer.
type Source uint8

const (
	FromAction   Source = iota // the action of a route
	FromApp                    // the app where no route matches
	FromPanic                  // the app, for an action that panicked
	FromTimeout                // the adapter, for an action that is late
	FromLimit                  // a limit on requests of a kind
	FromOverload               // the adapter, for a request that waited too long
	FromMemory                 // the adapter, for want of memory
	FromProtocol               // the adapter, for a request that it could not read
)

// String returns the name of the source, such as action, app or panic.
func (s Source) String() string {
	names := [...]string{"action", "app", "panic", "timeout", "limit", "overload", "memory", "protocol"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("AnswerSource(%d)", uint8(s))
}
