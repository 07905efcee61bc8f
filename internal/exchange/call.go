package exchange

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A Pipeline finds and runs the actions for the requests of adapters, and makes answers. Its methods may be called on any
// goroutine, at any time.
type Pipeline interface {
	// NewCall returns a call for the requests of w, one after another.
	NewCall(w Wire) Call

	// IsDraining reports whether the server drains: every answer that begins closes its connection.
	IsDraining() bool

	// IsRestarting reports whether the server drains because a new process serves in its place.
	IsRestarting() bool

	// LeastBody returns the smallest body limit of all routes, in bytes. A body of at most this length is within the limit of
	// every route.
	LeastBody() int64

	// Takes reports whether a route names the method. Routes for all methods do not count.
	Takes(method string) bool

	// Problem returns an error with a status and a detail for the client. cause is for the log only.
	Problem(status int, detail string, cause error) error

	// Status returns the status for err, 500 if err has none.
	Status(err error) int

	// Answer returns the answer for an error that an action returned. The answer owns memory, so it serves one request.
	Answer(err error) Answer

	// NotNow returns a 503 answer that asks the client to retry later. The answer owns no memory and can be sent any number of
	// times.
	NotNow(detail string) Answer

	// NoMemory returns the error for memory that the budget refused because of met. what names the thing that needs the memory.
	NoMemory(what string, met memory.Cap) error

	// Late counts and logs a late action of the route, and returns the answer to send instead of the answer of the action.
	Late(route *Route) Answer
}

// A Call leads one request at a time through the pipeline. An adapter makes it once for a Wire and reuses it. Only the goroutine
// that has the request may call the methods, unless their comments say otherwise.
type Call interface {
	// State returns the state of the request that the adapter and the pipeline share. It is the same during the life of the
	// call.
	State() *State

	// Begin prepares the call for the request in its State, without routing, to answer the request without an action. read is
	// false for an unreadable request, of which only State is known.
	Begin(read bool)

	// Find prepares the call for the request in its State, and routes the request. It runs no application code and does not
	// block. If found is false, routing requires application code, and FindCarefully must be called.
	Find(host string) (found bool)

	// FindCarefully is Find with application code, which may block.
	FindCarefully(host string)

	// Run runs the action. An answer of the kind Later must be passed to Produce; any other answer is ready to be sent. After a
	// panic of the action Run returns an answer, too.
	Run() Answer

	// Produce produces an answer of the kind Later. It sends a long answer by Wire.Begin and its Sink. The returned answer is
	// ready to be sent.
	Produce(Answer) Answer

	// Drop discards the answer of an action whose request was answered without it. It releases the memory of the answer, and the
	// places of the request in concurrency limits.
	Drop(Answer)

	// Decorate makes an answer without an action ready to be sent.
	Decorate(a Answer, source Source) Answer

	// Hooked reports whether Decorate and Observe would run application code, which may block. It may be called on any goroutine
	// while the action runs.
	Hooked() bool

	// Observe passes the answer to its observers: once for each request, before the answer is sent, if State.Watched is set.
	// took is the duration of the request, negative if the adapter has called Clock instead.
	Observe(a Answer, took time.Duration)

	// Clock records the current time as the beginning of the request.
	Clock()

	// InheritFrom copies from the call of a late action, which still runs, the state that the answer in its place needs: the
	// observers and the identity. It may be called on another goroutine than that of the action.
	InheritFrom(late Call)

	// Context returns own with the values that middleware has added. own is the result of Wire.Context.
	Context(own context.Context) context.Context

	// Params reports whether SetMatch would set parameters.
	Params() bool

	// SetMatch sets the pattern and the parameters in a request of net/http.
	SetMatch(req *http.Request)

	// DetachBody transfers the payload, in which the body of an answer is stored, from the request to the sender. The result has
	// the full capacity of the buffer.
	DetachBody(body string) []byte

	// Abandon releases the memory charges of the request. The adapter calls it instead of End if it leaves the call to the
	// garbage collector.
	Abandon()

	// End ends the request after its answer was sent or its last byte was passed to the sender. Memory borrowed from the
	// request is invalid afterwards.
	End()

	// Ended reports, in builds with the race detector, whether the request of the call has ended. In such builds each request has
	// a call of its own.
	Ended() bool
}

// A Source is the origin of an answer.
type Source uint8

const (
	FromAction   Source = iota // the action of a route
	FromApp                    // the app, if no route matches
	FromPanic                  // the app, after a panic of the action
	FromTimeout                // the adapter, for a late action
	FromLimit                  // a concurrency limit of a route, group or client
	FromOverload               // the adapter, for a request that waited too long
	FromMemory                 // the adapter, because the memory budget is used up
	FromProtocol               // the adapter, for an unreadable request
)

// String returns the name of the source, such as action, app or panic.
func (s Source) String() string {
	names := [...]string{"action", "app", "panic", "timeout", "limit", "overload", "memory", "protocol"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("Source(%d)", uint8(s))
}
