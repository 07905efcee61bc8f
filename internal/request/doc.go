// Package request has the parts of a request that HTTP/1.1 and HTTP/2 on the event loops share. A wire of either protocol embeds a
// Base, and implements Framing for it.
//
//	base.go     the part of a wire that does not depend on the framing
//	body.go     a request body that has arrived completely
//	context.go  the context of a request
//	count.go    statistics by route
//	deadline.go deadlines of standard handlers
//	fields.go   fields and targets in the form of net/http
//	machine.go  states and events
//	phase.go    the present work of an action
//	std.go      the request of net/http
//	stdbody.go  its body
//	visit.go    a time limit for consecutive requests
package request
