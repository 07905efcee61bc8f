// Package http2 turns the input of a client into HTTP/2 events, and answers into
// frames (RFC 9113). It does no I/O, starts no goroutine, reads no clock and has no
// mutable global state.
//
//	frame.go     the layout of frames          errors.go    error codes and violations
//	conn.go      a connection: bytes to events settings.go  SETTINGS of both sides
//	headers.go   HEADERS and CONTINUATION      control.go   all other frames
//	request.go   a request from its fields     classes.go   classes of fields
//	data.go      DATA and its windows          stream.go    streams and their table
//	answer.go    writing heads, bodies, ends   priority.go  the order of sending (RFC 9218)
//	part.go      streams that are answered before their bodies have ended
//	abuse.go     limits on work that serves no request
//	limits.go    limits on memory
//	recent.go    ended streams                 upgrade.go   a first request by HTTP/1.1
//
// [Conn.Next] takes the client's input and returns an [Event] for its owner: a
// request, a part of a body, the end of a stream. The Conn answers all other frames
// itself. It appends its output to [Conn.Out], a buffer that the owner provides and
// sends.
//
// Three rules hold:
//
//   - Every violation by a client has its error code and a message for the log. If a
//     violation concerns a single stream, the connection continues.
//   - The result depends only on the bytes, not on how they arrived.
//   - Memory and work are bounded per client: streams, by the number of streams whose action has not
//     returned, even if they were reset; field blocks; windows, which grow only for a
//     body that is read; and, by a bucket of tokens, all work that serves no request.
package http2
