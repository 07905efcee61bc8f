// Package http2 converts the input of a client to HTTP/2 events, and answers to frames (RFC 9113). It does no I/O, starts no goroutine,
// reads no clock and has no mutable global state.
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
// [Conn.Next] takes the client's input and returns an [Event] for the owner of the connection: a request, a part of a body, or the end
// of a stream. The Conn handles frames that need no decision of the owner itself. It appends its output to [Conn.Out], a buffer that the
// owner provides and sends.
//
// Three rules hold:
//
//   - Each violation by a client has an error code and a message for the log. If a violation concerns a single stream, the connection
//     continues.
//   - The result depends only on the bytes, not on how the input was divided.
//   - Memory and work are limited for each client. The number of streams is limited, and a stream counts until its action has returned,
//     even if it was reset. The size of field blocks is limited. Windows are limited, and grow only for a body that is read. A bucket of
//     tokens limits all work that serves no request.
package http2
