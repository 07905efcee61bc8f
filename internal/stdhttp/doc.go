// Package stdhttp is the adapter between net/http and the pipeline (exchange.Wire), and a net/http server with additions:
// limits on connections and slow clients, and a shutdown that resets no connection. It does not know the types App, Request
// and Response.
//
// The adapter serves requests of any net/http server. A request runs on the goroutine of
// net/http; an action with a time limit has a goroutine of its own. Wires are pooled, except
// those of late actions, which are left to the collector.
//
//	wire.go     a request and its answer           request.go the body, and the request for handlers
//	late.go     timeouts of routes                 sink.go    streamed answers
//	inner.go    requests inside middleware         holder.go  memory held for a request
//	count.go    counting by route
//	service.go  the servers of an app              server.go  the server of one listener
//	listener.go limits on connections              pause.go   times without accepts
//	backlog*.go emptying the backlog of a listener
//	drain.go    requests that net/http's shutdown would not answer
//	lost*.go    clients that disconnect while the action waits for memory
//	conn.go     time limits of connections         body.go    time limits of HTTP/1.1 bodies
//	malformed.go malformed requests that net/http accepts
//	switched.go connections that have switched to another protocol
//	stream.go   time limits of HTTP/2 streams      deadline.go lazy read deadlines
//	proxy.go    the PROXY protocol
//
// # Cost and limits of a request
//
// App.ServeHTTP (internal/stdhttp/wire.go) takes a pooled wire, which contains a Request. Headers
// go into the server's map as value slices that all responses share, or that are cut from a larger
// allocation. net/http sets the length of a small body, which is cheaper than a field in the map.
// The body is written with one call. net/http owns the connection, the framing, Date and all steps
// before the first. Dunlin starts the server of this package; others work too. Its connections
// (conn.go, body.go) limit the pauses of a client in a body and in reading an answer: a deadline is
// set once and renewed only after it has expired, so ordinary requests set none. While an action
// runs, net/http reads to detect a disconnect, and interrupts that read when the action has ended,
// mostly before the read has begun, in which case no deadline is set either (deadline.go). An HTTP/2
// connection carries many streams, each of which its client can block. A timer watches the waiting
// operations of each stream (stream.go). The rest of a body is read before the answer, as by
// net/http, but at most 64 KB and with the same minimum rate (skipBody).
package stdhttp
