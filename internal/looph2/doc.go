// Package looph2 is HTTP/2 on the event loops of package engine: the adapter (exchange.Wire)
// between the streams of a connection and the calls of the pipeline. Package http2 parses and writes frames; this
// package manages the responses, goroutines, memory and timeouts of streams.
//
//	handler.go  what loophttp calls               session.go  a connection: events in, frames out
//	stream.go   a request and its answer          run.go      running its action, here or elsewhere
//	wire.go     the pipeline's view of it         std.go      requests for standard handlers
//	body.go     bodies that the action reads      sink.go     responses in pieces
//	respond.go  sending                           late.go     timeouts of actions
//	slow.go     slow clients                      memory.go   memory of a stream
//	drain.go    the end of a connection           count.go    counting by route
//	room.go     reservations of memory            visit.go    the length of turns
//	calm.go     clients beyond limits on frames   job.go      running it on a worker
//	backlog.go  clients with too many unread responses
//	unread.go   bytes between a stream's goroutine and the loop
//	flow.go     state of streams with bodies or responses in pieces
//	upgrade.go  connections that began with HTTP/1.1
//
// # Ownership
//
// A connection always belongs to its loop. Its session, the http2.Conn in it and all stream fields marked as
// the loop's belong to the driver of the loop. An action runs as a part of its connection (engine/part.go): when
// it blocks, another driver continues with the loop and the connection. From then on the action leaves its output in
// its stream under session.mu, and the loop collects it from the session's mail when it is woken.
//
//	inline     on the loop; the response goes directly into the output
//	lost       on the goroutine that had the loop; the response is mailed
//	worker     for a route that is known to block, or whose body is streamed; mailed
//	background for lasting streams: a goroutine without a driver; mailed
//
// A stream occupies one of the places of http2.Limits.MaxStreams until its action has returned, also after a reset.
//
// # Bodies
//
// A body that arrived with its head, or has an announced length of up to 64 KB, is buffered and lent to the action as one
// slice. Any other body is streamed: the loop keeps the received data, at most the stream's window, charges it to the
// stream's account, and reopens the window as the action reads. Data that arrives during a Read goes directly to
// it. The data of a body whose action waits for memory is unclaimed: it does not count against the connection's window.
//
// # Responses
//
// A complete response goes into the output as far as windows and priorities permit. The rest stays in its memory, charged to
// the stream, until its turn. A response in pieces is at most streamRoom ahead of the client's windows; a long Write blocks
// while the loop sends from its slice.
//
// # Other protocols
//
// If a route names CONNECT, clients may request another protocol on a stream (RFC 8441): its action, or standard
// handler, reads the body and writes the response at the same time. Neither has a length, nor a minimum rate once the
// response has begun.
//
// # Not implemented
//
// Server push, which browsers have dropped. The first 512 bytes of a session's tables are not in the budget: an idle
// connection without more takes less than 1 KB in all.
package looph2
