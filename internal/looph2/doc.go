// Package looph2 is HTTP/2 on the event loops of package engine: the adapter (exchange.Wire)
// between the streams of a connection and the calls of the pipeline. The frames are package
// http2's; this package has the streams' answers, goroutines, memory and time.
//
//	handler.go  what loophttp calls               session.go  a connection: events in, frames out
//	stream.go   a request and its answer          run.go      running its action, here or elsewhere
//	wire.go     what the pipeline asks of it      std.go      requests for standard handlers
//	body.go     bodies that the action reads      sink.go     answers that come in pieces
//	respond.go  sending                           late.go     actions that take too long
//	slow.go     clients that are slow             memory.go   what a stream holds
//	drain.go    the end of a connection           count.go    counting by route
//	room.go     large answers wait for room       visit.go    when others have their turn
//	calm.go     clients that do too much          job.go      running it on a worker
//	backlog.go  clients that ask for more than they take
//	unread.go   bytes between a stream's goroutine and the loop
//	flow.go     what only streams need whose bodies or answers come in pieces
//	upgrade.go  a connection that has begun by HTTP/1.1
//
// # Who owns what
//
// A connection is always its loop's. Its session, the http2.Conn in it and all fields of a
// stream that are said to be the loop's belong to who drives the loop. An action runs in the
// middle of that, as a part of its connection (engine/part.go): when it blocks, the loop and
// the connection go on with another driver, and what the action has to say from then on it
// leaves in its stream under session.mu, whose mail the loop collects when it is woken.
//
//	inline     on the loop; the answer goes straight into the output
//	lost       on the goroutine that had the loop; the answer is mailed
//	worker     of a route known to block, or whose body is read as it comes; mailed
//	background streams that last: a goroutine without a driver; mailed
//
// A stream has a place, of those that http2.Limits.MaxStreams bounds, until its action has
// returned, whoever has reset it.
//
// # Bodies
//
// A body that came with its head, or of up to 64 KB that is announced, is gathered and lent
// to the action in whole. Any other is read as it comes: the loop keeps what has come, which
// is at most the stream's window, charged to the stream's account, and the window opens again
// as the action asks for more. What comes while a Read waits goes straight to it. What is here of one whose action waits
// for room is unclaimed: it does not close the connection's window.
//
// # Answers
//
// What is complete goes into the output as far as windows and priorities allow. The rest stays
// where it lies, charged to the stream, until its turn comes. What comes in pieces is at most
// streamRoom ahead of what the windows have let out; a long Write waits while it is sent from where it lies.
//
// # Other protocols
//
// Where a route names CONNECT, clients may ask for another protocol on a stream (RFC 8441): its action, or
// standard handler, reads the body and writes the answer at the same time. Neither has a length or a least rate
// once the answer has begun.
//
// # What is not here
//
// Server push (browsers have dropped it).
// Of a session's own memory the first 512 bytes of tables are not in the budget: an idle connection that
// has no more takes less than 1 KB in all.
package looph2
