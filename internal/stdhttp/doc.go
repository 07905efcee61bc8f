// Package stdhttp is the adapter between net/http and the pipeline (exchange.Wire), and the
// server of net/http with what that leaves open: bounds on connections and on the slowness of
// clients, and an end that resets nobody. It knows neither App nor Request nor Response.
//
// The adapter serves requests of whatever server of net/http. A request has the goroutine that
// net/http gives it; under a limit on time its action has another. Wires are pooled, and the one
// of a late action is left to the collector.
//
//	wire.go     a request and its answer           request.go its body, and as handlers want it
//	late.go     timeouts of routes                 sink.go    the way to the connection
//	inner.go    requests behind middleware         holder.go  memory that is held for one
//	count.go    counting by route
//	service.go  what the servers of an app share   server.go  the server of one listener, its end
//	listener.go bounds on connections              pause.go   times during which nothing is accepted
//	backlog*.go emptying the backlog of a listener
//	drain.go    requests that net/http's end would not answer are waited for
//	lost*.go    clients that have gone while the action waits for room
//	conn.go     connections: clients that take     body.go    bodies of HTTP/1.1 that come too
//	            an answer too slowly                          slowly
//	malformed.go requests that net/http lets pass and that are refused
//	stream.go   the same for streams of HTTP/2     deadline.go read deadlines that are left to pass
//	proxy.go    whose connections proxies pass on
//
// # What a request costs and what bounds it
//
// App.ServeHTTP (internal/stdhttp/wire.go) takes a pooled wire, which has a Request. Headers go
// into the server's map as value slices that a block shares among all responses, or that are cut
// from a piece of memory made for many. The length of a small body is left to net/http, which
// says it at less cost than a field of that map. The body is written with one call. Net/http owns
// connection, framing, Date and everything before step 1. internal/stdhttp is the server that
// Dunlin starts for it; any other will do. Its connections (conn.go, body.go) bound how long a
// client may pause in a body and take nothing of an answer: a deadline is set once and renewed
// only after it has passed, so that an ordinary request pays for none. While an action runs net/http
// reads, to see whether the client goes, and interrupts that read when the action has ended: mostly before
// it has begun, which then sets no deadline either (deadline.go). Of HTTP/2 a connection
// carries many requests, each of which its client may hold up: there a timer looks, while
// something of a stream waits, whether it moves (stream.go). What an action leaves of a body is
// read before the answer, as net/http does it, but only up to 64 KB and no slower than a body
// that is read (skipBody).
package stdhttp
