// Package stdhttp is the server of net/http with what that leaves open: bounds on
// connections and on the slowness of clients, and an end that resets nobody. What its
// requests mean is the business of the handler that it is given: it knows neither
// Request nor Response.
//
//	service.go  what the servers of an app share   server.go  the server of one listener, its end
//	listener.go bounds on connections              backlog*.go  emptying the backlog of a listener
//	conn.go     connections: clients that take     body.go    bodies of HTTP/1.1 that come too
//	            an answer too slowly                          slowly
//	stream.go   the same for streams of HTTP/2     deadline.go read deadlines that are left to pass
package stdhttp
