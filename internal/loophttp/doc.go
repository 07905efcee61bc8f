// Package loophttp is HTTP/1.1 on the event loops of package engine: the adapter
// (exchange.Wire) between the bytes of a connection and the calls of the pipeline. It knows
// neither App nor Request nor Response.
//
//	service.go    the engine of an app, its listeners    settings.go  what it is given, what it tells
//	handler.go    what the engine calls                  wire.go      one request and its answer
//	write.go      answers that are complete              stream.go    those that come in pieces
//	refuse.go     those that no action made              aside.go     those that last
//	body.go       bodies that the action reads           gather.go    small ones that are waited for
//	unfinished.go requests of which more must come       input.go     the buffer that they were read into
//	room.go       answers that need room first           count.go     counting by route
//	context.go    contexts of requests                   std.go       requests for standard handlers,
//	deadlines.go  their deadlines                        stdbody.go   and their bodies
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
// The package is for Linux; elsewhere its Service serves nothing.
package loophttp
