// Package http2 turns the bytes of a client into the events of HTTP/2, and answers
// into frames (RFC 9113). It does no I/O, starts no goroutine, reads no clock and
// keeps no global state that changes.
//
//	frame.go     the layout of frames          errors.go    codes, and what was wrong
//	conn.go      a connection: bytes to events settings.go  SETTINGS of both sides
//	headers.go   HEADERS and CONTINUATION      control.go   all other frames
//	request.go   what a request's fields mean  classes.go   ... each of them alone
//	data.go      DATA, and the windows for it  stream.go    streams, and which there are
//	answer.go    writing heads, bodies, ends   priority.go  whose turn it is (RFC 9218)
//	part.go      streams that are answered before their bodies have ended
//	abuse.go     what a client may ask for without doing anything useful
//	limits.go    what a client may make the server hold
//	recent.go    streams that are over         upgrade.go   a first request that came by HTTP/1.1
//
// A [Conn] is fed what its client sent by [Conn.Next], which returns an [Event] for what
// its owner has to know: a request, a piece of a body, a stream that is over. All
// else it answers itself. What it has to say is appended to [Conn.Out], which the owner
// lends it and sends.
//
// Three rules hold:
//
//   - Every violation that a client can commit has its error code, and the words for
//     the log. Where a stream can be blamed alone, the connection goes on.
//   - The outcome depends on the bytes alone, not on how they arrived.
//   - What a client can make the server hold or do is bounded: streams, by those
//     whose action has not returned, whatever became of them on the wire; field
//     blocks; windows, which grow only for a body that is read; and by a bucket of
//     tokens all that costs work and serves no request.
package http2
