// Package exchange is the seam between protocols and the pipeline: what an adapter, which
// speaks a protocol, and the pipeline, which has the routes and runs the actions, know of each
// other. It knows neither a protocol nor the public API. Adapters import it and nothing of the
// API; the root package implements [Pipeline] and [Call].
//
// This page is what one reads to write an adapter. The adapters there are: internal/memhttp
// (no network, for tests: the one to read first), internal/loophttp and internal/looph2 (HTTP/1.1
// and HTTP/2 on event loops) and internal/stdhttp (whatever net/http speaks). A new one joins the
// table of internal/suite, and passes its tests.
//
// # What an adapter offers
//
// A [Wire]: the request that is being answered, and the way back to its client. A wire serves
// one request at a time and is used for one after the other; it has one [Call] for all of them,
// from [Pipeline.NewCall]. An adapter gets a [Server]: settings that it gives effect to, the
// pipeline, and the counters, budgets and bounds that all adapters share.
//
// # The life of a request
//
//	adapter                                             pipeline
//	read the head, AppendCanonical the path
//	State().Set(method, path, query, lent)
//	Call.Find(host) ─────────────────────────────────▶  the route, or a fallback; State.Route is set
//	  false: Call.FindCarefully(host), which may block
//	State.Route: is it Critical, has it a Timeout?
//	Call.Run() ──────────────────────────────────────▶  middleware and action, by Wire's methods;
//	                                                    policies; what failed is logged
//	  an Answer of the kind Later:
//	  Call.CarryOut(answer) ─────────────────────────▶  Wire.Begin(answer, length), then Sink.Write …
//	if State.Watched: Call.Observe(answer, took) ────▶  observers
//	send the Answer by its Kind, Answer.Release
//	Call.End() ──────────────────────────────────────▶  loans end
//
// How an answer is sent depends on its [Kind]: Complete and Gone by its status,
// [Answer.Headers] and Body; Sent needs nothing more, Wire.Begin and its Sink have done it; for
// Abort the connection, or the stream, is dropped. Announced says what Content-Length a
// Complete one has, unless the status or the method forbids it ([BodyAllowed], HEAD).
//
// An answer that no action made (a malformed request, one that waited too long) comes from
// Pipeline.Answer or NotNow, with Call.Begin in place of Find and Call.Amend in place of Run.
//
// # On which goroutine
//
// Everything about one request belongs to one goroutine at a time: the one that calls Run. The
// methods of Wire are called on it, within Run, CarryOut, Amend and Observe. Exceptions: a
// standard handler may read the body and write its answer on goroutines of its own, one each,
// and a Sink's deadlines may be set on any; Call.Hooked and Call.Succeed may be called while
// the action runs. Find blocks for nothing and runs no code of others; all else may block.
//
// # Who owns what memory
//
//   - State.Path and Query may view memory of the adapter if Lent is set; it must stay as it is
//     until Call.End. Strings that a Wire returns are kept by actions for ever: views are to be
//     copied, by State.Strings. What List, Received and Body yield is borrowed until Call.End.
//   - An Answer is the adapter's from Run on. Its body lies in the memory of its Own, in the
//     request's (State.Whole, State.Payload, which end with Call.End) or in memory that nobody
//     changes. Release gives it back once it is sent; Lend and Call.PassOn take the buffer along
//     for longer than the request. Wire.Begin keeps nothing of its answer.
//   - What a request makes the server hold is charged to an account ([Wire.Account]); the
//     pipeline opens it before it reads a body in whole, and closes it with ReleaseAccount.
//
// # A blocked action, a late answer
//
// An adapter may move a request to another goroutine, or other requests away from it, as
// loophttp does when an action blocks (takeover): to the pipeline nothing changes, as long as
// there is one goroutine at a time.
//
// A route may have a timeout (Route.Timeout). It ends when the answer begins: with the
// return of Run, or with Wire.Begin. When it passes before, the adapter answers by
// Pipeline.Late on another wire, whose call has taken over what observers need (Call.Succeed),
// and the connection is closed, or the stream ended. From then on the late wire must not touch
// the connection: Begin returns a [LateSink], Account returns nil, and reading the body fails
// with [ErrLate]. Its context, a [TimeoutContext], ends with context.DeadlineExceeded. That one
// of the two answers is decided in one place; where each request has a goroutine, that is a
// [Race] and its method Run. What the late action returns is given to Release or to Call.Drop; its wire is used
// again only after the action has returned, or left to the collector after Call.Abandon.
//
// An action may end its goroutine (runtime.Goexit): then Wire.Abandoned is called, Run does not
// return, and the adapter answers 500 if it can, by code that it has deferred.
//
// # The end
//
// While Pipeline.IsDraining, Run calls Wire.CloseAfter: the answer is the last of its
// connection (Connection: close, GOAWAY). Requests that are being answered go on; an adapter
// that owns connections closes idle ones, and those that are left when its time is up.
//
//	wire.go     what an adapter offers     call.go     what the pipeline offers
//	state.go    what both know of a request
//	targets.go  which requests of a route had large answers
//	server.go   what adapters know of a server
//	lentbody.go a body that was read, for standard handlers
//	ended.go    what writers and bodies are when their time is over
//	late.go     answers without the action problem.go  what is wrong with bodies
//	pace.go     whether a route blocks     slow.go     whether a request body comes too slowly
//	outcome.go  what it is counted as
//	answer.go   an answer as a value       own.go      the memory it may own
//	bodywriter.go  writing into that memory
//	fields.go   its header fields          block.go    fields that were rendered once
//	pairs.go    what two blocks come to    namemask.go sets of names in one word
//	check.go    what may be a field        strings.go  borrowed bytes as safe strings
//	copy.go     copying what is read to a sink
//	overlay.go  a request with other header fields than were sent  glance.go what is asked of most
//	encoding.go bodies in content codings: what encodes an answer as it is sent, decoding bodies
//	tap.go      bodies shown to a cache as they are sent    room.go      the first capacity of buffers
//	stdhead.go  what net/http knows of a request, as a Wire  stdrequest.go the other way
//	identity.go identifiers of requests  calm.go      actions that do not panic
//	describe.go an answer in words          cookie.go    the value of a cookie
//	memo.go     what is made once for a few keys
package exchange
