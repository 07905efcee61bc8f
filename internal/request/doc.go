// Package request has the parts of a request that HTTP/1.1 and HTTP/2 on the event loops share.
//
//	body.go     a request body that has arrived completely
//	count.go    statistics by route
//	machine.go  states and events
//	phase.go    the present work of an action
//	std.go      the request of net/http
package request
