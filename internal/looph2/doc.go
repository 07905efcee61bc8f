// Package looph2 is HTTP/2 on the event loops of package engine: the adapter (exchange.Wire) between the streams of a
// connection and the calls of the pipeline. Package http2 handles the frames; this package handles the streams' answers,
// goroutines, memory and time.
//
//	handler.go  settings and reused memory        session.go  a connection: events in, frames out
//	stream.go   a request and its answer          run.go      running its action, here or elsewhere
//	wire.go     what the pipeline calls           std.go      requests for standard handlers
//	body.go     bodies that the action reads      sink.go     streamed answers
//	respond.go  sending                           late.go     timeouts of actions
//	slow.go     slow clients                      memory.go   charging the memory of a stream
//	drain.go    the end of a connection           count.go    counting by route
//	room.go     reservations for answers          job.go      running an action on a worker
//	abuse.go    clients that send too much
//	backlog.go  clients that request more than they take
//	unread.go   bytes between a stream's goroutine and the loop
//	flow.go     state of streamed bodies and answers only
//	upgrade.go  a connection that began with HTTP/1.1
//	answer.go   the states of an answer         action.go   the states of an action
//	intake.go   the states of a request
//
// # Ownership
//
// A connection always belongs to its loop. Its session, the http2.Conn in it and all fields of a stream that are marked as the
// loop's belong to the goroutine that drives the loop. An action runs inside the loop's turn, as a part of its connection
// (engine/part.go). When it blocks, the loop and the connection continue with another driver. From then on the action stores
// its output in its stream under session.mu, adds the stream to the session's inbox, and wakes the loop.
//
//	inline     on the loop; the answer is written straight to the output
//	lost       on the goroutine that had the loop; by the inbox
//	worker     of a route known to block, or whose body is streamed; by the inbox
//	background long-lived streams: a goroutine without a driver; by the inbox
//
// A stream occupies one of the http2.Limits.MaxStreams places until its action has returned, even if either side has reset it.
//
// # States of a stream
//
// Each table below is a machine: a row is a state, a column is an event, and the entry is the next state. A dot is an event that
// cannot happen in the state. It panics in builds with the race detector.
//
// A *bare* request has no body. Any other is *gathering* until its body is complete, or *streamed* to its action as it arrives. What
// still arrives for a *refused* request is discarded.
//
//	request    gather     complete  streamBody  refuse
//	bare       gathering  ·         streamed    refused
//	gathering  ·          gathered  streamed    refused
//	gathered   ·          ·         ·           ·
//	streamed   ·          ·         ·           ·
//	refused    ·          ·         ·           ·
//
// The streamed answer of an action is *begun* with its head, *finished* when its last piece waits to be sent, and *sent* with its
// end. An *aborted* one is incomplete: the stream is reset after the pieces that there are. Nobody waits for an *unwanted* or *cut*
// answer, of which nothing, or a part, was made: the client has cancelled the request, or the server ends the stream. A complete
// answer is *none* here: a complete answer is in stream.complete until its head is sent, and its rest in stream.resting.
//
//	answer    begin   finish    send  abort     cancel
//	none      begun   ·         ·     aborted   unwanted
//	begun     ·       finished  ·     aborted   cut
//	finished  ·       ·         sent  finished  cut
//	sent      ·       ·         ·     sent      cut
//	aborted   ·       ·         ·     aborted   cut
//	unwanted  cut     ·         ·     unwanted  unwanted
//	cut       ·       cut       ·     cut       cut
//
// The action of a stream is *idle* until its request has arrived. It may be *postponed* in the session's backlog, and *queued* for a
// worker. When it has blocked, its timeout may *expire* until it decides to answer: then a *late* answer is made, and the action's
// own is dropped. An action whose routing code has run on the loop may be queued after it. Refusals end an action that never
// began. A stream is *freed* when its action has returned and its answer is sent, or the connection has ended.
//
//	action        postpone   enqueue  start    decide        expire  answerLate    end           free
//	idle          postponed  queued   running  ·             ·       ·             returned      freed
//	postponed     ·          queued   ·        ·             ·       ·             returned      freed
//	queued        ·          ·        running  ·             ·       ·             returned      ·
//	running       postponed  queued   ·        answering     late    ·             returned      ·
//	answering     ·          ·        ·        answering     ·       ·             returned      ·
//	late          ·          ·        ·        late          ·       lateAnswered  lateReturned  ·
//	lateAnswered  ·          ·        ·        lateAnswered  ·       ·             returned      ·
//	lateReturned  ·          ·        ·        ·             ·       returned      ·             ·
//	returned      ·          ·        ·        ·             ·       ·             ·             freed
//	freed         ·          ·        ·        ·             ·       ·             ·             ·
//
// # Bodies
//
// A body that arrived with its head, or has an announced length of up to 64 KB, is gathered and lent to the action entirely.
// Any other is streamed: the loop keeps the received bytes, at most the stream's window, charges them to the stream's account,
// and opens the window again as the action asks for more. Bytes that arrive while a Read waits are copied straight to it. The
// received bytes of a stream whose action waits for room are unclaimed: they do not close the connection's window.
//
// # Answers
//
// A complete answer is written to the output as far as windows and priorities allow. The rest stays in its memory, charged to
// the stream, until its turn. A streamed answer is at most streamRoom ahead of the bytes that the windows have let out; a long
// Write waits while the loop sends from its slice.
//
// # Other protocols
//
// Where a route names CONNECT, clients may ask for another protocol on a stream (RFC 8441): its action, or standard handler,
// reads the body and writes the answer at the same time. Neither has a length, or a minimum rate once the answer has begun.
//
// # Limitations
//
// Server push is not supported (browsers have dropped it). The first 512 bytes of the tables in a session's own memory are not
// in the budget: an idle connection without more takes less than 1 KB in total.
package looph2
