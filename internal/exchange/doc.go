// Package exchange is what protocols and the pipeline have in common: the answer that
// an action returned, its header fields, strings that stay as they are, and the server
// that both are parts of. It knows neither a protocol nor the public API.
//
//	wire.go     what an adapter offers     state.go    what both sides know of a request
//	server.go   what it knows of a server  slow.go     whether a request body comes too slowly
//	pace.go     whether a route blocks     copy.go     copying what is read to a sink
//	answer.go   an answer as a value       own.go      the memory it may own
//	fields.go   its header fields          block.go    fields that were rendered once
//	check.go    what may be a field        strings.go  borrowed bytes as safe strings
package exchange
