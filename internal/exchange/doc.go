// Package exchange is the interface between protocols and the pipeline. An adapter implements a protocol. The pipeline has the
// routes and runs the actions. This package does not depend on a protocol or on the public API. Adapters import this package and
// no package of the API; the root package implements [Pipeline] and [Call].
//
// Read this page before writing an adapter. The existing adapters are internal/memhttp (no network, for tests: read it first),
// internal/loophttp and internal/looph2 (HTTP/1.1 and HTTP/2 on event loops) and internal/stdhttp (all protocols of net/http).
// Add a new adapter to the table of internal/suite: the adapter must pass the tests there.
//
// # The parts of an adapter
//
// An adapter provides a [Wire]: the current request, and the connection to its client. A wire serves one request at a time, and
// any number of requests one after another. It has one [Call] for all of them, from [Pipeline.NewCall]. An adapter gets a
// [Server]: the settings that it must apply, the pipeline, and the counters, budgets and limits that all adapters share.
//
// # The life of a request
//
//	adapter                                             pipeline
//	read the head, canonicalize the path
//	State().Set(method, path, query, lent)
//	Call.Find(host) ─────────────────────────────────▶  the route, or a fallback; State.Route is set
//	  false: Call.FindCarefully(host), which may block
//	check State.Route: Critical, Timeout
//	Call.Run() ──────────────────────────────────────▶  middleware and action use Wire's methods;
//	                                                    features; failures are logged
//	  an Answer of the kind Later:
//	  Call.Produce(answer) ─────────────────────────▶  Wire.Begin(answer, length), then Sink.Write …
//	if State.Watched: Call.Observe(answer, took) ────▶  observers
//	send the Answer by its Kind, Answer.Release
//	Call.End() ──────────────────────────────────────▶  loans end
//
// The way to send an answer depends on its [Kind]. For Complete and Gone, the adapter sends the status, [Answer.Headers] and the
// body. An answer of the kind Sent was sent already, by Wire.Begin and its Sink. For Abort the adapter closes the connection or
// resets the stream. [Answer.Announced] returns the Content-Length of a Complete answer; the adapter omits the field if the
// status or the method forbids it ([BodyAllowed], HEAD).
//
// To answer without an action (a malformed request, or a request that waited too long), the adapter calls Call.Begin instead of
// Find. Pipeline.Answer or NotNow makes the answer, and Call.Decorate replaces Run.
//
// # Goroutines
//
// A request belongs to one goroutine at a time: the caller of Run. The methods of Wire are called on this goroutine, within Run,
// Produce, Decorate and Observe. There are three exceptions. A standard handler may read the body on one goroutine and write its
// answer on another one. A Sink's deadlines may be set on any goroutine. Call.Hooked and Call.InheritFrom may be called while the
// action runs. Find does not block and does not run application code; all other methods may block.
//
// # Ownership of memory
//
//   - If State.Lent is set, State.Path and Query may view memory of the adapter, which must stay unchanged
//     until Call.End. Actions may keep the strings that a Wire returns. So a Wire copies strings that view
//     memory of the adapter, with State.Strings. List, Received and Body return memory borrowed until Call.End.
//   - After Run, an Answer belongs to the adapter. Its body is stored in the memory of its Own, in
//     memory of the request (State.Whole, State.Payload, valid until Call.End) or in immutable
//     memory. The adapter calls Release after it has sent the answer. If the sender needs the body after
//     the end of the request, Answer.Lend and Call.DetachBody transfer the buffer of the body to the sender.
//     Wire.Begin keeps nothing of its answer.
//   - Memory held for a request is charged to an account ([Wire.Account]). The pipeline opens the
//     account before it reads a complete body, and closes it with ReleaseAccount.
//
// # A blocked action, a late answer
//
// An adapter may move a request to another goroutine, or other requests away from the goroutine of a blocked action, as loophttp
// does (takeover). The pipeline allows this if only one goroutine at a time uses the request.
//
// A route may have a timeout (Route.Timeout). It no longer applies when the answer begins: when Run returns, or at Wire.Begin. At
// the timeout, the adapter sends the answer of Pipeline.Late on another wire, and closes the connection or ends the stream. The
// call of that wire copies the observers and the identity from the late call (Call.InheritFrom). From then on the late wire must not
// touch the connection: Begin returns a [LateSink], Account returns nil, and reading the body fails with [ErrLate]. The context
// of the late request, a [TimeoutContext], ends with context.DeadlineExceeded. The choice between the two answers must be made in
// one place. If each request has a goroutine, that place is a [Race]. The adapter passes the answer of the late action to
// Call.Drop, or calls its Release. The adapter uses the late wire again only after the action has returned, or leaves it to the
// garbage collector after Call.Abandon.
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
//	wire.go          the adapter's interface
//	call.go          the pipeline's interface
//	state.go         the state of a request that the adapter and the pipeline share
//	server.go        settings and shared parts of a server
//	lentbody.go      a complete body, for standard handlers
//	upgrade.go       connections that switch to another protocol
//	ended.go         writers and bodies after the end of their request
//	late.go          answers without the action
//	problem.go       errors of bodies
//	slow.go          the minimum rate of request bodies
//	awaitmemory.go   requests for large answers that wait for memory
//	blockingstat.go  whether a route blocks
//	outcome.go       the outcome under which a request is counted
//	answer.go        an answer as a value
//	own.go           the memory of an answer
//	bodywriter.go    writing into the memory of an answer
//	fields.go        header fields of an answer
//	block.go         fields rendered in advance
//	pairs.go         combinations of two blocks
//	namemask.go      sets of names in one word
//	check.go         validity of fields
//	strings.go       borrowed bytes as safe strings
//	copy.go          copying from a reader to a sink
//	overlay.go       a request with changed header fields
//	glance.go        the most used fields
//	encoding.go      content codings: encoding an answer while it is sent, decoding bodies
//	tap.go           bodies shown to a cache as they are sent
//	room.go          the initial capacity of buffers
//	stdhead.go       a Wire from an *http.Request
//	stdrequest.go    an *http.Request from a Wire
//	identity.go      identifiers of requests
//	describe.go      an answer in words
//	cookie.go        the value of a cookie
//	memo.go          values computed once for a few keys
package exchange
