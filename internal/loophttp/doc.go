// Package loophttp is HTTP/1.1 on the event loops of package engine: the adapter (exchange.Wire) between the bytes of a
// connection and the calls of the pipeline. It does not know the types App, Request and Response.
//
//	service.go    the engine of an app, its listeners    settings.go  settings and statistics
//	secure_linux.go the server of a listener with TLS
//	handler.go    the calls from the engine              wire.go      one request and its answer
//	write.go      complete answers                       stream.go    streamed answers
//	reply.go      the states of an answer
//	refuse.go     answers without an action              background.go answers in the background
//	body.go       bodies that the action reads           gather.go    small bodies that are gathered
//	chunks.go     chunked bodies
//	unfinished.go incomplete requests                    input.go     the read buffer
//	std.go        contexts, standard handlers            deadlines.go deadlines of standard handlers
//	late.go       answers for actions that exceed their timeout
//	protocol.go   HTTP/1.1 or HTTP/2 for a new connection
//	upgrade.go    upgrades from HTTP/1.1 to HTTP/2
//	switched.go   connections that have switched to another protocol, such as WebSocket
//
// # How a request is answered
//
// The engine calls handler.Data with the input of a connection, on the goroutine that drives the loop. The head is parsed in
// place (package http1), and the wire returns views of it, except for strings that leave the request. The steps in wire.go are:
//
//	serveNext   parse the head, or store an incomplete one (unfinished)
//	serveHead   the body: complete, to be gathered, or to be read by the action
//	find        route it: Call.Find, and Call.FindCarefully if that could block
//	answer      Call.Run between Driver.Enter and Leave, where the loop can be taken over;
//	            Call.Produce for a streamed answer
//	conclude    observers, the answer into the driver's output, Call.End
//
// # States of an answer
//
// A complete answer is appended to the output at once. An answer in pieces is *begun* when its head is in the output, and *flushed*
// when a part of it may have been sent. A *hijacked* connection belongs to the action. A row of the table is a state, a column is an
// event, and the entry is the next state. A dot is an event that cannot happen in the state. It panics in builds with the race
// detector.
//
//	sending   begin  flush     hijack
//	unbegun   begun  ·         hijacked
//	begun     ·      flushed   hijacked
//	flushed   ·      flushed   hijacked
//	hijacked  ·      hijacked  ·
//
// # Ownership
//
// A wire and its call belong to a driver, as its Scratch. When a loop is taken over, or an answer continues in the background,
// the wire stays with the old driver and the loop's new driver gets another wire. The connection, the output, and the state of
// body and answer are shared. The holder of wire.mu uses them; an operation that waits releases it.
//
// # The path of the bytes
//
// internal/engine calls a Handler with bytes; internal/loophttp/handler.go is that handler, and the files named below are in
// the same folder.
//
//   - A driver has read input of a connection into its own buffer and calls Data.
//   - http1.Head.Parse reads a head in place. The head views the buffer; nothing is copied.
//   - If the head is incomplete, the state of the parser is stored with the connection as an
//     unfinished request, and the engine stores the bytes.
//   - If the head is malformed, or two implementations could read its framing differently, the
//     answer is a 4xx. The connection then closes, lingering until the client has read the answer.
//   - A body that has arrived completely is lent in place. A small incomplete body is gathered
//     first, for 2 ms (gather.go), or for 250 ms if the actions of the route use complete bodies;
//     then the action begins without the rest. A large body, or one whose client waits for
//     100 Continue, is read by the action from the connection, which releases the loop.
//   - Steps 1 to 5 above. Strings that leave the Request are copied into its exchange.Strings
//     when the action requests them; until then path and query are views.
//   - The response is appended to the driver's output: status line, a Date that is rendered once
//     a second, the wire bytes of its header block, its own headers, the length. A small body is
//     copied after the head. A large one is sent without copying, in one gathering write with the
//     head, and released after it was sent.
//   - The loop continues with the next request in the buffer: pipelined requests are answered in
//     order and sent in one write. Remaining bytes are stored with the connection.
//
// The package supports Linux; on other systems its Service serves nothing.
package loophttp
