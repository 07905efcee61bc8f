// Package exchange is the interface between protocols and the pipeline. An adapter implements a protocol. The pipeline has the
// routes and runs the actions. This package does not depend on a protocol or on the public API. Adapters import it and nothing
// of the API; the root package implements [Pipeline] and [Call].
//
// Read this page before writing an adapter. The existing adapters are internal/memhttp (no network, for tests: read it first),
// internal/loophttp and internal/looph2 (HTTP/1.1 and HTTP/2 on event loops) and internal/stdhttp (all protocols of net/http).
// Add a new adapter to the table of internal/suite: the adapter must pass the tests there.
//
// # The parts of an adapter
//
// An adapter provides a [Wire]: the current request, and the connection to its client. A wire serves one request at a time, and
// any number in sequence; it has one [Call] for all of them, from [Pipeline.NewCall]. An adapter gets a [Server]: the settings
// that it must apply, the pipeline, and the counters, budgets and limits that all adapters share.
//
// # The life of a request
//
//	adapter                                             pipeline
//	read the head, canonicalize the path
//	State().Set(method, path, query, lent)
//	Call.Find(host) ─────────────────────────────────▶  the route, or a fallback; State.Route is set
//	  false: Call.FindCarefully(host), which may block
//	State.Route: is it Critical, has it a Timeout?
//	Call.Run() ──────────────────────────────────────▶  middleware and action, by Wire's methods;
//	                                                    features; failures are logged
//	  an Answer of the kind Later:
//	  Call.Produce(answer) ─────────────────────────▶  Wire.Begin(answer, length), then Sink.Write …
//	if State.Watched: Call.Observe(answer, took) ────▶  observers
//	send the Answer by its Kind, Answer.Release
//	Call.End() ──────────────────────────────────────▶  loans end
//
// The way to send an answer depends on its [Kind]. Complete and Gone are sent by status, [Answer.Headers] and Body. Sent is
// sent already, by Wire.Begin and its Sink. For Abort the connection, or the stream, is dropped. Announced returns the
// Content-Length of a Complete answer, unless the status or the method forbids it ([BodyAllowed], HEAD).
//
// An answer without an action (to a malformed request, or one that waited too long) is made by Pipeline.Answer or NotNow, with
// Call.Begin in place of Find and Call.Decorate in place of Run.
//
// # Goroutines
//
// A request belongs to one goroutine at a time: the caller of Run. The methods of Wire are called on it, within Run,
// Produce, Decorate and Observe. Exceptions: a standard handler may read the body and write its answer on goroutines of its own,
// one each, and a Sink's deadlines may be set on any; Call.Hooked and Call.InheritFrom may be called while the action runs. Find
// does not block and does not run application code; all other methods may block.
//
// # Ownership of memory
//
//   - State.Path and Query may view memory of the adapter if Lent is set. The memory must stay unchanged
//     until Call.End. Actions may keep strings that a Wire returns for ever, so a Wire copies
//     views, by State.Strings. List, Received and Body return memory borrowed until Call.End.
//   - After Run, an Answer belongs to the adapter. Its body is stored in the memory of its Own, in
//     memory of the request (State.Whole, State.Payload, valid until Call.End) or in immutable
//     memory. Release frees it after it was sent; Lend and Call.DetachBody transfer the buffer to the
//     sender beyond the end of the request. Wire.Begin keeps nothing of its answer.
//   - Memory held for a request is charged to an account ([Wire.Account]). The pipeline opens the
//     account before it reads a complete body, and closes it with ReleaseAccount.
//
// # A blocked action, a late answer
//
// An adapter may move a request to another goroutine, or other requests away from it, as
// loophttp does when an action blocks (takeover). The pipeline does not notice, provided that
// there is one goroutine at a time.
//
// A route may have a timeout (Route.Timeout). Its time ends when the answer begins: with the
// return of Run, or with Wire.Begin. At the timeout, the adapter answers by
// Pipeline.Late on another wire, whose call has taken over the state of the observers (Call.InheritFrom),
// and the connection is closed, or the stream ended. From then on the late wire must not touch
// the connection: Begin returns a [LateSink], Account returns nil, and reading the body fails
// with [ErrLate]. Its context, a [TimeoutContext], ends with context.DeadlineExceeded. The choice between
// the two answers is made in one place. If each request has a goroutine, that place is a
// [Race] with its method Run. The response of the late action is passed to Release or to Call.Drop. Its wire is used
// again only after the action has returned, or left to the garbage collector after Call.Abandon.
//
// An action may end its goroutine (runtime.Goexit): then Wire.Abandoned is called, Run does not
// return, and a deferred function of the adapter answers 500 if it can.
//
// # Shutdown
//
// While Pipeline.IsDraining, Run calls Wire.CloseAfter: the answer is the last of its
// connection (Connection: close, GOAWAY). Running requests continue. An adapter
// that owns connections closes idle ones, and at the deadline the remaining ones.
//
//	wire.go     the adapter's interface    call.go     the pipeline's interface
//	state.go    the state of a request that both share
//	server.go   settings and shared parts of a server
//	lentbody.go a complete body, for standard handlers
//	upgrade.go  connections that switch to another protocol
//	ended.go    writers and bodies after the end of their request
//	late.go     answers without the action problem.go  errors of bodies
//	slow.go     the minimum rate of request bodies  awaitmemory.go  requests for large answers that wait for memory
//	blockingstat.go whether a route blocks
//	outcome.go  the outcome under which it is counted
//	answer.go   an answer as a value       own.go      its memory
//	bodywriter.go  writing into that memory
//	fields.go   its header fields          block.go    fields rendered in advance
//	pairs.go    combinations of two blocks    namemask.go sets of names in one word
//	check.go    validity of fields         strings.go  borrowed bytes as safe strings
//	copy.go     copying from a reader to a sink
//	overlay.go  a request with changed header fields  glance.go the most used fields
//	encoding.go content codings: encoding an answer while it is sent, decoding bodies
//	tap.go      bodies shown to a cache as they are sent    room.go      the first capacity of buffers
//	stdhead.go  a Wire from an *http.Request  stdrequest.go an *http.Request from a Wire
//	identity.go identifiers of requests
//	describe.go an answer in words          cookie.go    the value of a cookie
//	memo.go     values computed once for a few keys
package exchange
