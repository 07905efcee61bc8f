// Package exchange is what protocols and the pipeline have in common: the answer that
// an action returned, its header fields, and strings that stay as they are. It
// knows neither a protocol nor the public API.
//
//	wire.go     what an adapter offers     state.go    what both sides know of a request
//	pace.go     whether a route blocks
//	answer.go   an answer as a value       own.go      the memory it may own
//	fields.go   its header fields          block.go    fields that were rendered once
//	check.go    what may be a field        strings.go  borrowed bytes as safe strings
package exchange
