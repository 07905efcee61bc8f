// Package stdhttp is the adapter between net/http and the pipeline (exchange.Wire), and the
// server of net/http with what that leaves open: bounds on connections and on the slowness of
// clients, and an end that resets nobody. It knows neither App nor Request nor Response.
//
// The adapter serves requests of whatever server of net/http. A request has the goroutine that
// net/http gives it; under a limit on time its action has another. Wires are pooled, and the one
// of a late action is left to the collector.
//
//	wire.go     a request and its answer           request.go its body, and as handlers want it
//	limits.go   limits on time                     sink.go    the way to the connection
//	inner.go    requests behind middleware         holder.go  memory that is held for one
//	count.go    counting by route
//	service.go  what the servers of an app share   server.go  the server of one listener, its end
//	listener.go bounds on connections              backlog*.go  emptying the backlog of a listener
//	conn.go     connections: clients that take     body.go    bodies of HTTP/1.1 that come too
//	            an answer too slowly                          slowly
//	stream.go   the same for streams of HTTP/2     deadline.go read deadlines that are left to pass
//	proxy.go    whose connections proxies pass on
package stdhttp
