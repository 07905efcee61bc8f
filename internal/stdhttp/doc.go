// Package stdhttp has two parts: the adapter between net/http and the pipeline (exchange.Wire), and a net/http server with
// additions. The additions are limits on connections and slow clients, and a shutdown that resets no connection. The
// package does not use the types App, Request and Response.
//
// The adapter can serve the requests of any net/http server. A request runs on the goroutine of net/http. An action with a
// time limit runs on a goroutine of its own. Wires are pooled. The wire of an action that exceeds its time limit is not
// reused.
//
//	wire.go     a request and its answer           request.go the body, and the request for handlers
//	late.go     timeouts of routes                 sink.go    streamed answers
//	inner.go    requests from standard middleware  holder.go  memory held for a request
//	count.go    counting by route
//	service.go  the servers of an app              server.go  the server of one listener
//	listener.go limits on connections              pause.go   pauses in accepting
//	backlog*.go emptying the backlog of a listener
//	drain.go    requests that net/http's shutdown would not answer
//	lost*.go    clients that disconnect while the action waits for memory
//	conn.go     time limits of connections         body.go    time limits of HTTP/1.1 bodies
//	malformed.go malformed requests that net/http accepts
//	switched.go connections that have switched to another protocol
//	stream.go   time limits of HTTP/2 streams      deadline.go read deadlines with few system calls
//	proxy.go    the PROXY protocol
//
// # Cost and limits of a request
//
// App.ServeHTTP (wire.go) takes a wire from a pool. The wire contains the Request. The values of the answer's headers are
// slices that all answers share, or parts of a larger allocation. net/http sets the length of a small body, because this
// costs less than a field in the map of headers. The body is written with one call. net/http reads the connection and the
// head, and writes the framing and Date.
//
// Dunlin starts the server of this package; other net/http servers also work. The connections of this server (conn.go,
// body.go) limit the time in which a client sends nothing of a body or reads nothing of an answer. A deadline is set once
// and renewed only after it has expired, so that ordinary requests set none. While an action runs, net/http reads to detect
// a disconnect, and interrupts this read when the action ends. Usually the read has not begun at that time, and then no
// deadline is set (deadline.go). An HTTP/2 connection carries many streams, and the client can block each of them. For each
// stream, a timer watches the operations that wait (stream.go). The rest of a body is read before the answer, as in
// net/http, but at most 64 KiB and with the same minimum rate (skipBody).
package stdhttp
