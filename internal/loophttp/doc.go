// Package loophttp is HTTP/1.1 on the event loops of package engine: the adapter
// (exchange.Wire) between the bytes of a connection and the calls of the pipeline. It knows
// neither App nor Request nor Response.
//
//	service.go    the engine of an app, its listeners    settings.go  what it is given, what it tells
//	secure_linux.go the server of a listener with TLS
//	handler.go    what the engine calls                  wire.go      one request and its answer
//	write.go      answers that are complete              stream.go    those that come in pieces
//	refuse.go     those that no action made              background.go     those that last
//	body.go       bodies that the action reads           gather.go    small ones that are waited for
//	chunks.go     those in chunks
//	unfinished.go requests of which more must come       input.go     the buffer that they were read into
//	room.go       answers that need room first           count.go     counting by route
//	context.go    contexts of requests                   std.go       requests for standard handlers,
//	deadlines.go  their deadlines                        stdbody.go   and their bodies
//	late.go       those that are answered without their action, which took too long
//	visit.go      when a connection has had the loop for long    parts.go  connections of HTTP/2, which are internal/looph2's
//	upgrade.go    those that become that in the middle
//
// # How a request is answered
//
// The engine calls handler.Data with what a connection has sent, on the goroutine that drives
// the loop. The head is parsed where it lies (package http1); what the wire says of it are
// views, but for the strings that leave the request. Then, in wire.go:
//
//	serveNext   parse the head, or keep what there is of it (unfinished)
//	serveHead   the body: here, to be gathered, or to be read by the action
//	find        route it: Call.Find, and Call.FindCarefully where that could block
//	answer      Call.Run between Driver.Enter and Leave, where the loop can be taken over;
//	            Call.CarryOut for an answer that is made when it is sent
//	conclude    observers, the answer into the driver's output, Call.End
//
// # Who owns what
//
// A wire belongs to a driver, as its Scratch, and so does the call on it: when a loop is taken
// over, or an answer lasts, the wire goes along with the old driver, and the loop's new one has
// another. Of what they share, the connection, the output, and the state of body and answer are
// used by who holds wire.using, which is free while an operation waits.
//
// # What happens to the bytes
//
// internal/engine calls a Handler with bytes; internal/loophttp/handler.go is that handler, and
// the files named below lie beside it.
//
//   - A driver has read what a connection sent into its own buffer and calls Data.
//   - http1.Head.Parse reads a head in place. The head views the buffer; nothing is copied.
//   - Incomplete: the state of the parser is kept with the connection as an unfinished request,
//     and the engine keeps the bytes.
//   - Malformed, or a framing that two implementations could read differently: a 4xx, and the
//     connection is closed, lingering until the client has read the answer.
//   - The body: none, or here already, is lent as it lies in the buffer. A small one that is
//     still coming is gathered first, for 2 ms (gather.go), or 250 ms where the route's action
//     has shown that it takes bodies in whole; then the action begins without the rest. A large
//     one, or one whose client waits for 100 Continue, is read by the action from the
//     connection, which gives up the loop to do so.
//   - Steps 1 to 5 above. Strings that leave the Request are copied into its exchange.Strings
//     when the action asks for them; path and query are views until then.
//   - The response is appended to the driver's output: status line, a Date that is rendered once
//     a second, the wire bytes of its header block, its own headers, the length. A small body is
//     copied behind the head; a large one is sent from where it lies, by one gathering write
//     with the head, and given back when it is gone.
//   - On with the next request in the buffer: what was pipelined is answered in order and leaves
//     in one write. Bytes that are left over are kept with the connection.
//
// The package is for Linux; elsewhere its Service serves nothing.
package loophttp
